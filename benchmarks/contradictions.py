"""Count what the detector of contradictions finds, misses and raises for nothing.

    python benchmarks/contradictions.py [--pairs N] [--show]

Four counts. The version pairs of ``data/kb``, as retrieved sections with titles, dates of effect and the notes that
name the other version blanked: for each planned fact, the two sections that state it. The pairs of passages of
``tests/unit/core/text/contradictions/data``, whose README says who wrote them and when. The N pairs of sections of
different current pages with the highest cosine of their words (weighted by rarity): whatever is reported there counts
as a false alarm. And the same of a superseded page with any other than its successor, where some reports are right.

Intervals are 95 % ones by Clopper and Pearson. No pair that is held out is shown, with ``--show`` neither.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from rag_harness.core.text.contradictions import Contradiction, against, contradictions
from rag_harness.core.text.terms import terms
from rag_harness.core.types import Chunk
from rag_harness.data.loaders.text import load_markdown
from rag_harness.models.dry_run import WordTokenizer
from rag_harness.retrieval.chunking import ChunkingSettings
from rag_harness.retrieval.chunking.chunkers import chunk_sections
from rag_harness.stats import clopper_pearson

ROOT = Path(__file__).parents[1]
KB = ROOT / "data" / "kb"
PAIRS = ROOT / "tests" / "unit" / "core" / "text" / "contradictions" / "data"
_TELLING = re.compile(
    r"\A# [^\n]*|^Effective [^\n.]*\.|^## Previous version\n(?:(?!\n#)[\s\S])*|^A newer version of this page[^\n]*",
    re.M,
)


class Fact(NamedTuple):
    """A fact that two versions of a page tell differently."""

    outdated: str
    current: str
    statements: tuple[str, str]


Pair = tuple[Chunk, Chunk]


def blanked(text: str) -> str:
    """Return a page's text without what says which version it is, as long as before."""
    return _TELLING.sub(lambda told: re.sub(r"[^\n]", " ", told[0]), text)


def sections(folder: Path = KB) -> dict[str, list[Chunk]]:
    """Return each page's sections, blanked, by the page's name."""
    cut = {}
    for file in sorted(folder.rglob("*.md")):
        document = load_markdown(file, file.stem)
        chunks = chunk_sections(document, WordTokenizer(), ChunkingSettings())
        hidden = blanked(document.text)
        cut[file.stem] = [_hidden(chunk, hidden) for chunk in chunks]
    return cut


def _hidden(chunk: Chunk, text: str) -> Chunk:
    shown = chunk.repeated_header + text[chunk.start : chunk.end]
    return Chunk(chunk.chunk_id, chunk.doc_id, shown, section=chunk.section)


def facts(folder: Path = KB) -> list[Fact]:
    plan = json.loads((folder / "structure.json").read_text(encoding="utf-8"))
    return [
        Fact(pair["outdated"], pair["current"], (conflict["outdated_statement"], conflict["current_statement"]))
        for pair in plan["version_pairs"]
        for conflict in pair["conflicts"]
    ]


def stating(chunks: Sequence[Chunk], statement: str) -> Chunk:
    """Return the section that states a fact."""
    return next(chunk for chunk in chunks if statement in " ".join(chunk.text.replace("**", "").split()))


def between(pair: Pair) -> list[Contradiction]:
    return contradictions([chunk.text for chunk in pair])


def carries(found: Contradiction, fact: Fact) -> bool:
    """Return whether a contradiction is the planned one."""
    said = [" ".join(quote.sentence.replace("**", "").split()) for quote in (found.first, found.second)]
    return all(statement in one or one in statement for statement, one in zip(fact.statements, said, strict=True))


class Likeness:
    """The cosine of two texts' terms, weighted by their rarity among ``texts``."""

    def __init__(self, texts: Sequence[str]) -> None:
        often = Counter(word for text in texts for word in terms(text))
        self._weights = {word: math.log(len(texts) / count) ** 2 for word, count in often.items()}
        # Each text is in hundreds of pairs.
        self._whole = cache(self._sum)

    def __call__(self, one: frozenset[str], other: frozenset[str]) -> float:
        return self._sum(one & other) / ((self._whole(one) * self._whole(other)) ** 0.5 or 1.0)

    def _sum(self, words: frozenset[str]) -> float:
        return math.fsum(self._weights.get(word, 0.0) for word in words)


def similar(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """Return the pairs with the highest cosine of their terms, weighted by rarity."""
    texts = {chunk.chunk_id: chunk.text for pair in pairs for chunk in pair}
    words = {name: terms(text) for name, text in texts.items()}
    like = Likeness(list(texts.values()))
    return sorted(pairs, key=lambda pair: -like(words[pair[0].chunk_id], words[pair[1].chunk_id]))[:count]


def quotes(folder: Path = KB) -> list[tuple[str, str]]:
    """Return each quote that carries an answer, with its page."""
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    found = {(Path(quote["filename"]).stem, quote["quote"]) for row in rows for quote in row.get("evidence", ())}
    return sorted(found)


def other_pairs(cut: dict[str, list[Chunk]], planned: Sequence[Fact], outdated: bool) -> Iterator[Pair]:
    """Return pairs of sections of different pages that are no version pair, with or without a superseded page."""
    old = {fact.outdated for fact in planned}
    versions = {frozenset((fact.outdated, fact.current)) for fact in planned}
    for one, other in combinations(sorted(cut), 2):
        if frozenset((one, other)) not in versions and bool({one, other} & old) == outdated:
            yield from product(cut[one], cut[other])


def report_versions(cut: dict[str, list[Chunk]], planned: Sequence[Fact], show: Callable[..., None]) -> None:
    seen: dict[str, list[bool]] = {}
    for fact in planned:
        pair = stating(cut[fact.outdated], fact.statements[0]), stating(cut[fact.current], fact.statements[1])
        found = any(carries(one, fact) for one in between(pair))
        seen.setdefault(fact.outdated, []).append(found)
        if not found:
            show(f"  missed: {' / '.join(fact.statements)}")
    for name, found_facts in seen.items():
        print(f"  {name:24} {sum(found_facts)} of {len(found_facts)} planned facts")
    print(f"version pairs noticed: {sum(map(any, seen.values()))} of {len(seen)}; "
          f"planned facts {sum(map(sum, seen.values()))} of {sum(map(len, seen.values()))}")  # fmt: skip


def report_passages(file: Path, show: Callable[..., None]) -> None:
    rows: list[dict[str, Any]] = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    kinds: dict[tuple[bool, str], list[bool]] = {}
    for row in rows:
        found = contradictions([row["first"], row["second"]])
        kinds.setdefault((row["conflicts"], row["kind"]), []).append(bool(found))
        if bool(found) != row["conflicts"]:
            show(f"  {row['id']}: {row['first']} / {row['second']} -> {[one.differs for one in found]}")
    for conflicts, title in ((True, "found"), (False, "false alarms")):
        chosen = {kind: found for (is_one, kind), found in kinds.items() if is_one == conflicts}
        parts = ", ".join(f"{kind} {sum(found)}/{len(found)}" for kind, found in chosen.items())
        hits, count = sum(map(sum, chosen.values())), sum(map(len, chosen.values()))
        low, high = clopper_pearson(hits, count)
        print(f"{file.stem}: {title} {hits} of {count} ({hits / count:.1%}, {low:.1%} to {high:.1%}; {parts})")


def report_others(title: str, pairs: Sequence[Pair], show: Callable[..., None]) -> None:
    start = perf_counter()
    reported = [(pair, found) for pair in pairs if (found := between(pair))]
    seconds = perf_counter() - start
    for pair, found in reported:
        for one in found:
            show(f"  {pair[0].chunk_id} / {pair[1].chunk_id} {one.kind} {one.differs}\n    {one.first.sentence!r}\n"
                 f"    {one.second.sentence!r}")  # fmt: skip
    share = len(reported) / len(pairs) if pairs else 0.0
    each = seconds / max(1, len(pairs)) * 1e3
    print(f"{title}: {len(reported)} of {len(pairs)} pairs ({share:.1%}), {each:.1f} ms a pair")


def report_answers(cut: dict[str, list[Chunk]], planned: Sequence[Fact], show: Callable[..., None]) -> None:
    stale = [against(fact.statements[0], [stating(cut[fact.current], fact.statements[1]).text]) for fact in planned]
    print(f"outdated statements as answers: {sum(map(bool, stale))} of {len(stale)} contradict the current section")
    old = {fact.outdated for fact in planned}
    sections_of = [chunk for page, chunks in cut.items() if page not in old for chunk in chunks]
    words = {chunk.chunk_id: terms(chunk.text) for chunk in sections_of}
    like = Likeness([chunk.text for chunk in sections_of])
    asked = [(page, quote) for page, quote in quotes() if page not in old]
    alarms = 0
    for page, quote in asked:
        said = terms(quote)
        others = [chunk for chunk in sections_of if chunk.doc_id != page]
        nearest = sorted(others, key=lambda chunk: -like(said, words[chunk.chunk_id]))[:5]
        found = against(quote, [chunk.text for chunk in nearest])
        alarms += bool(found)
        for one in found:
            show(f"  {page} {one.kind} {one.differs}\n    {one.first.sentence!r}\n    {one.second.sentence!r}")
    print(f"quotes as answers, false alarms: {alarms} of {len(asked)} ({alarms / len(asked):.1%})")


def main() -> None:
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("--pairs", type=int, default=1000, help="pairs of sections; default: 1000")
    arguments.add_argument("--show", action="store_true", help="print what was missed and what was reported")
    asked = arguments.parse_args()

    def show(line: str) -> None:
        if asked.show:
            print(line)

    def hide(_: str) -> None:
        """A pair that is held out is not read, or it is no measure any more."""

    cut, planned = sections(), facts()
    report_versions(cut, planned, show)
    report_passages(PAIRS / "conflict_pairs.jsonl", show)
    report_passages(PAIRS / "development_pairs.jsonl", show)
    report_passages(PAIRS / "unseen_development_pairs.jsonl", show)
    report_passages(PAIRS / "unseen_held_out_pairs.jsonl", hide)
    for title, outdated in (("current pages, false alarms", False), ("superseded pages, reports", True)):
        report_others(title, similar(list(other_pairs(cut, planned, outdated)), asked.pairs), show)
    report_answers(cut, planned, show)


if __name__ == "__main__":
    main()
