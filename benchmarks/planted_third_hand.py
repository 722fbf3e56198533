"""Faults planted by a third hand, who has read neither the rules of the diagnosis nor their code.

    python benchmarks/planted_third_hand.py [--fault NAME] [--log FILE]

A pipeline is BM25, perhaps a reranker, a context of ``K`` chunks that it reports, a prompt, a reader and an answer that
arrives. A fault alters one of these, or the gold. The reader knows the right gold, and says it where all of it stands
in its prompt. The trials are explained as ``rag-harness explain`` does, which is told nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TextIO
from zlib import crc32

from planted import answered, explained, with_gold

from rag_harness.core.protocols import Experiment
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Case, Chunk, Completion, Hit, Message, PipelineOutput, Query, Usage
from rag_harness.evaluation.measures.correctness import needed_quotes, rightness
from rag_harness.models.prompts import Prompts, load_prompts
from rag_harness.pipelines.parts import RunParts, read_answer, response_format
from rag_harness.pipelines.trace import Trace
from rag_harness.records.scores import CauseLine
from rag_harness.retrieval.bm25 import Bm25Index

ROOT = Path(__file__).parents[1]
WORKSHOP = {
    "mode": "auto",
    "kb_dir": str(ROOT / "benchmarks" / "planted_third_hand" / "workshop"),
    "chunk_size": 120,
    "chunk_overlap": 24,
}
K, CANDIDATES = 5, 20
SYSTEM = (
    'You help members of a community workshop, from the context alone, and cite it as [Source 1]. Say "I don\'t know" '
    'if it is not enough. Reply as JSON: {"answer": "..."}'
)

# ---- Faults, with what is right about each -------------------------------------------------------------------------

Right = tuple[str, str, str]
"""Cause, detail (empty: any), and words that the remedy has."""
UNREAD = ("Logic Failure", "not read where it stood", "prompt as sent")
CUT = ("Logic Failure", "cut short", "longer answers")
SHORT = ("Retrieval Miss", "the page came without the passage", "send chunks whole")
GOLD = ("Gold Doubtful", "", "mend")
SILENT = ("Undetermined", "the pipeline does not say what it looked up", "PipelineOutput")
REFUSAL = ("Logic Failure", "wrong refusal", "soften")
FAULTS: Mapping[str, Sequence[Right]] = {
    "a_first_two": [UNREAD],
    "a_one_a_page": [UNREAD],
    "a_last_third": [UNREAD],
    "a_last_a_page": [UNREAD],
    "a_tails": [UNREAD, SHORT],
    "a_tails_90": [UNREAD, SHORT],
    "b_newline": [CUT],
    "b_semicolon": [CUT],
    "b_stream": [CUT],
    "b_stream_length": [CUT],
    "b_chars": [CUT],
    "c_words": [SHORT],
    "c_words_black": [SHORT],
    "c_words_urls": [SHORT],
    "c_title": [SHORT],
    "c_title_black": [SHORT],
    "c_snippet": [SHORT],
    "c_snippet_known": [SHORT],
    "c_snippet_urls": [SHORT],
    "d_off_by_one": [GOLD],
    "d_month": [GOLD],
    "d_unit": [GOLD],
    "d_up": [GOLD],
    "d_truths_up": [GOLD],
    "d_swap": [GOLD],
    "e_string": [SILENT],
    "e_answer_only": [SILENT],
    "e_answer_only_known": [SILENT],
    "f_polite": [REFUSAL],
    "f_varied": [REFUSAL],
    "f_echo": [REFUSAL],
    "g_deleted": [("Retrieval Miss", "not in the index", "add the page")],
    "g_border": [("Retrieval Miss", "cut by a chunk border", "larger chunks")],
    "g_reverse": [("Retrieval Miss", "lost in reranking", "reranker")],
    "g_reverse_unseen": [("Retrieval Miss", "found but ranked below k", "rank")],
}
ADDED = frozenset({"a_last_a_page", "a_tails_90", "c_words_urls", "c_snippet_known"})
"""Planted after the others had been run once: counted apart."""
BLACK_BOXES = frozenset({"black", "c_words_black", "c_title_black", "c_snippet", "e_string", "e_answer_only"})
"""Without an index that anybody knows, and not to be asked from other sources."""
FINISH = {"b_newline": ("stop", "stop"), "b_stream_length": ("length", "stop"), "b_chars": ("stop", "stop")}
"""What the server says of an answer that it cut, and of one that it did not; others say nothing of either."""
REFUSALS = (
    "No information about this could be found in the material.",
    "I am unable to help with this one.",
    "The sources are silent on that point.",
    "Sorry, nothing in here tells me that.",
    "That isn't mentioned anywhere in what I was given.",
    "It was not possible to determine the answer.",
)
REFUSED = re.compile(r"\bI don.t know\b|do not cover this|does not specify an answer|" + "|".join(REFUSALS))


def prompted(fault: str, hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits that the prompt has of those that the context reports."""
    if fault == "a_first_two":
        return list(hits[:2])
    if fault == "a_one_a_page":
        first = {hit.chunk.doc_id: hit for hit in reversed(hits)}
        return [hit for hit in hits if first[hit.chunk.doc_id] is hit]
    if fault == "a_last_a_page":
        return list({hit.chunk.doc_id: hit for hit in hits}.values())
    if fault == "a_last_third":
        left, cut = sum(len(hit.chunk.text) for hit in hits) * 2 // 3, []
        for hit in hits:
            cut.append(_with_text(hit, hit.chunk.text[: max(left, 0)]))
            left -= len(hit.chunk.text)
        return [hit for hit in cut if hit.chunk.text]
    if fault.startswith("a_tails"):
        return [_with_text(hit, hit.chunk.text[-90 if fault == "a_tails_90" else -200 :]) for hit in hits]
    return list(hits)


def sent(fault: str, hits: Sequence[Hit], asked: str) -> list[Hit]:
    """Return the hits as a service sends them."""
    if fault.startswith("c_words"):
        hits = [_with_text(hit, " ".join(hit.chunk.text.split()[:25])) for hit in hits]
    elif fault.startswith("c_title"):
        hits = [_with_text(hit, (hit.chunk.section or (hit.chunk.doc_id.removesuffix(".md"),))[-1]) for hit in hits]
    elif fault.startswith("c_snippet"):
        hits = [_with_text(hit, _snippet(hit.chunk.text, asked)) for hit in hits]
    if fault == "c_words_black":
        return [_named(hit, f"res-{hit.rank}") for hit in hits]
    if fault.endswith("_urls"):
        base = "https://kilnstreet.example/handbook/"
        return [_named(hit, base + hit.chunk.doc_id.removesuffix(".md"), f"#{hit.rank}") for hit in hits]
    return list(hits)


def _snippet(text: str, asked: str) -> str:
    terms = {word[:5] for word in re.findall(r"[a-z]{4,}", asked.lower())}
    words = _plain(text).split()
    found = [n for n, word in enumerate(words) if re.sub(r"\W", "", word.lower())[:5] in terms]
    start = max(found[0] - 4, 0) if found else 0
    marked = [f"<b>{word}</b>" if n in found else word for n, word in enumerate(words)]
    return f"…{' '.join(marked[start : start + 12])}…"


def arrives(fault: str, said: str, query: Query) -> str:
    """Return an answer as it arrives."""
    if fault.startswith("f_") and crc32(query.query_id.encode()[::-1]) % 3:
        if fault == "f_polite":
            return "Unfortunately the documents provided do not cover this. Please ask at the front desk."
        echo = f"The handbook does not specify an answer to: {query.text}"
        return echo if fault == "f_echo" else REFUSALS[crc32(query.query_id.encode()) % len(REFUSALS)]
    if REFUSED.search(said):
        return said
    if fault in ("b_newline", "b_semicolon"):
        return said.split("\n" if fault == "b_newline" else ";", maxsplit=1)[0]
    if fault.startswith("b_stream"):
        end = [found.end() for found in re.finditer(r"\S+", said)][:13][-1]
        return said[:end]
    return said[:75] if fault == "b_chars" else said


def _with_text(hit: Hit, text: str) -> Hit:
    return replace(hit, chunk=replace(hit.chunk, text=text))


def _named(hit: Hit, doc_id: str, part: str = "") -> Hit:
    return replace(hit, chunk=replace(hit.chunk, doc_id=doc_id, chunk_id=doc_id + part, metadata={}, section=()))


def _plain(text: str) -> str:
    return " ".join(re.sub(r"[*|_#]+", " ", text).split())


# ---- Reader and pipeline -------------------------------------------------------------------------------------------


class Reader:
    """Knows the right gold, sees the prompt alone, and says it in seven wordings."""

    model = "third-hand"

    def __init__(self, cases: Sequence[Case]) -> None:
        self._cases = {case.query.text: case for case in cases}

    async def complete(
        self,
        messages: Sequence[Message],
        response_format: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Completion:
        context, _, question = messages[-1].content.rpartition("\n\nQuestion: ")
        said = self._said(self._cases[question.strip()], context)
        return Completion(json.dumps({"answer": said}), self.model, Usage(), 1.0)

    def _said(self, case: Case, context: str) -> str:
        sources = [" ".join(each.split()) for each in context.split("[Source ")[1:]]
        needed = [" ".join(quote.split()) for quote in needed_quotes(case)]
        found = [quote for quote in needed if any(quote in each for each in sources)]
        if not case.answerable or not found:
            return "I don't know."
        if len(found) < len(needed):
            return f"The handbook tells me only this much: {_plain(found[0])}"
        quotes = [(plain := _plain(quote).rstrip("."))[0].upper() + plain[1:] for quote in needed]
        place = next(n for n, each in enumerate(sources, 1) if found[0] in each)
        return (
            case.ground_truth,
            f"From the handbook: {case.ground_truth}",
            f"{'; '.join(quotes)}.",
            "\n- ".join(["Here is what I found:", *quotes]),
            f"{case.ground_truth} [Source {place}]",
            f"**Answer**\n\n{case.ground_truth}",
            f"Good question. The handbook says this: “{'” and “'.join(quotes)}” [Source {place}]",
        )[crc32(b"third" + case.query.query_id.encode()) % 7]


@dataclass
class Faulty:
    """A pipeline with one fault; an empty name is none."""

    fault: str
    reader: Reader
    prompts: Prompts
    search: Callable[[str], list[Hit]]
    dropped: frozenset[str] = frozenset()

    async def answer(self, query: Query) -> Any:
        hits = [hit for hit in self.search(query.text) if hit.chunk.doc_id not in self.dropped]
        if self.fault == "g_reverse_unseen":
            hits = [replace(hit, score=1 / n, scores={}) for n, hit in enumerate(reversed(hits), 1)]
        hits = sent(self.fault, [replace(hit, rank=rank) for rank, hit in enumerate(hits, 1)], query.text)
        trace = Trace(retrieved=hits, context=hits[:K])
        if self.fault == "g_reverse":
            ranked = [hit.reranked(1 / n, n) for n, hit in enumerate(reversed(hits), 1)]
            trace.retrieved = [replace(new, rank=n) for n, new in enumerate(reversed(ranked), 1)]
            trace.context = ranked[:K]
        output = await self._read(query, trace)
        if self.fault == "e_string":
            return output.answer.text
        return PipelineOutput(output.answer) if self.fault.startswith("e_answer_only") else output

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        return await self._read(query, Trace(retrieved=list(hits), context=list(hits)))

    async def _read(self, query: Query, trace: Trace) -> PipelineOutput:
        messages = self.prompts.messages(query.text, prompted(self.fault, trace.context))
        completion = await trace.complete(_Altered(self, query), messages, response_format(reasoning=False))
        return trace.output(read_answer(completion.text, len(trace.context), reasoning=False))


@dataclass
class _Altered:
    """The reader, and what becomes of its answer."""

    pipeline: Faulty
    query: Query
    model: str = Reader.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        fault = self.pipeline.fault
        whole = await self.pipeline.reader.complete(messages, response_format)
        said = json.loads(whole.text)["answer"]
        came = arrives(fault, said, self.query)
        reason = FINISH.get(fault, ("", ""))[came == said]
        return replace(whole, text=json.dumps({"answer": came}), finish_reason=reason)


# ---- The suite, and gold that is wrong -----------------------------------------------------------------------------


class Suite:
    """Questions, pages and index."""

    def __init__(self) -> None:
        self.parts = RunParts(load_settings(WORKSHOP, rootdir=ROOT))
        self.data = self.parts.data("")
        self.cases = list(self.data.cases)
        self.chunks = list(self.parts.retrieval(data="").chunks)
        self.reader = Reader(self.cases)
        self.prompts = Prompts(SYSTEM, load_prompts("e2").user)
        pages = Counter(one.filename for case in self.cases for one in case.evidence)
        self.asked = [page for page, _ in sorted(pages.items(), key=lambda item: (-item[1], item[0]))]

    def experiment(self, fault: str) -> Experiment:
        chunks = self._indexed(fault)
        index, found = Bm25Index(lambda: chunks), dict[str, list[Hit]]()

        def search(text: str) -> list[Hit]:
            if text not in found:
                found[text] = index.search(text, CANDIDATES)
            return found[text]

        dropped = frozenset(sorted(self.asked)[1::4] if fault.startswith("e_") else ())
        faulty = Faulty(fault, self.reader, self.prompts, search, dropped)
        if fault in BLACK_BOXES:
            return Experiment("x1", faulty)
        return Experiment("x1", faulty, answer_from=faulty.answer_from, chunks=lambda: chunks)

    def with_gold(self, new: Mapping[str, Case]) -> None:
        self.cases = [new.get(case.query.query_id, case) for case in self.cases]
        self.data.cases = list(self.cases)

    def _indexed(self, fault: str) -> list[Chunk]:
        if fault == "g_deleted":
            return [chunk for chunk in self.chunks if chunk.doc_id not in self.asked[:2]]
        if fault != "g_border":
            return self.chunks
        pieces = [piece for chunk in self.chunks for piece in self._cut_in_quotes(chunk)]
        quotes = [one.quote for case in self.cases for one in case.evidence]
        assert not any(quote in piece.text for piece in pieces for quote in quotes)
        counted = Counter[str]()
        for place, piece in enumerate(pieces):
            pieces[place] = replace(piece, index=counted[piece.doc_id])
            counted[piece.doc_id] += 1
        return pieces

    def _cut_in_quotes(self, chunk: Chunk) -> list[Chunk]:
        borders = {0, len(chunk.text)}
        for one in (one for case in self.cases for one in case.evidence):
            at = chunk.text.find(one.quote) if one.filename == chunk.doc_id else -1
            if at >= 0:
                borders.add(chunk.text.rindex(" ", at, at + len(one.quote) // 2 + 1) + 1)
        header = len(chunk.repeated_header)
        return [
            replace(
                chunk,
                chunk_id=f"{chunk.chunk_id}/{start}",
                text=chunk.text[start:end],
                start=chunk.start + max(start - header, 0),
                end=chunk.start + max(end - header, 0),
                repeated_header=chunk.repeated_header if start == 0 else "",
            )
            for start, end in pairwise(sorted(borders))
        ]


MONTHS, DAYS = list(month_name)[1:], list(day_name)
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"]
UNITS = {
    "minutes": "seconds",
    "minute": "second",
    "seconds": "minutes",
    "hours": "minutes",
    "days": "hours",
    "weeks": "days",
    "months": "weeks",
    "kilogram": "pound",
    "mm": "cm",
    "cm": "mm",
    "°C": "°F",
    "cents": "euros",
}
PAIRS = ((0, 16), (3, 20), (6, 25), (9, 28), (12, 22))


def altered(fault: str, cases: Sequence[Case]) -> dict[str, Case]:
    """Return the answerable cases with a wrong gold, each itself where it has nothing that can be made wrong."""
    others = {case.query.query_id: case for case in cases}
    if fault in ("d_up", "d_truths_up"):
        others = {case.query.query_id: cases[place - 1] for place, case in enumerate(cases)}
    if fault == "d_swap":
        both = [*PAIRS, *((right, left) for left, right in PAIRS)]
        others |= {cases[left].query.query_id: cases[right] for left, right in both}
    new = {}
    for case in cases:
        other = others[case.query.query_id]
        if fault == "d_truths_up":
            changed = replace(case, ground_truth=other.ground_truth)
        elif fault in ("d_up", "d_swap"):
            changed = replace(case, ground_truth=other.ground_truth, evidence=other.evidence, qrels=other.qrels)
        else:
            evidence = _plain(" ".join(one.quote for one in case.evidence))
            wrong = {"d_off_by_one": _off_by_one, "d_month": _following, "d_unit": _other_unit}[fault]
            changed = replace(case, ground_truth=wrong(case.ground_truth, evidence))
        new[case.query.query_id] = changed
    return new


def _off_by_one(truth: str, evidence: str) -> str:
    for found in re.finditer(r"(?<![\d.,:])\d+(?![\d:,]*[:,]?\d)", truth):
        if re.search(rf"(?<![\d.,:]){found[0]}(?!\d)", evidence):
            return f"{truth[: found.start()]}{int(found[0]) + 1}{truth[found.end() :]}"
    for found in re.finditer(rf"\b(?:{'|'.join(NUMBERS[1:10])})\b", truth):
        if re.search(rf"\b{found[0]}\b", evidence, re.IGNORECASE):
            return truth[: found.start()] + NUMBERS[NUMBERS.index(found[0]) + 1] + truth[found.end() :]
    return truth


def _following(truth: str, evidence: str) -> str:
    for found in re.finditer(rf"\b(?:{'|'.join(MONTHS + DAYS)})\b", truth):
        among = MONTHS if found[0] in MONTHS else DAYS
        if found[0] in evidence:
            return truth[: found.start()] + among[(among.index(found[0]) + 1) % len(among)] + truth[found.end() :]
    return truth


def _other_unit(truth: str, evidence: str) -> str:
    for found in re.finditer(rf"(?<!\w)(?:{'|'.join(UNITS)})(?!\w)", truth):
        if re.search(rf"(?<!\w){found[0]}(?!\w)", evidence):
            return truth[: found.start()] + UNITS[found[0]] + truth[found.end() :]
    for found in re.finditer(r"€(\d+(?:\.\d+)?)", truth):
        if found[0] in evidence:
            return f"{truth[: found.start()]}{found[1]} %{truth[found.end() :]}"
    return truth


# ---- Running and counting ------------------------------------------------------------------------------------------


def is_good(case: Case, answer: str) -> bool:
    """Whether an answer has every figure and 60 % of the words of the ground truth, or of the needed quotes."""
    said = re.sub(r"\[Sources?[^\]]*\]", "", answer)
    if REFUSED.search(said) or not said.strip():
        return False
    figures, words = _figures(said), _stems(said)
    golds = [case.ground_truth, " ".join(map(_plain, needed_quotes(case)))]
    return any(_figures(gold) <= figures and len(_stems(gold) & words) >= 0.6 * len(_stems(gold)) for gold in golds)


def _figures(text: str) -> set[str]:
    numbers = rf"\b(?:{'|'.join([*NUMBERS, *MONTHS, *DAYS])})\b"
    return set(re.findall(r"\d+(?:[.,:]\d+)*", text)) | set(re.findall(numbers, text))


def _stems(text: str) -> set[str]:
    return {word[:5] for word in re.findall(r"[a-z]{4,}", text.lower())}


def _title(line: CauseLine) -> str:
    return f"{line.cause}: {line.detail}" if line.detail else str(line.cause)


def healthy(fault: str = "") -> dict[str, str]:
    """Run without a fault, print every cause that is named all the same, and return the answers."""
    suite = Suite()
    with tempfile.TemporaryDirectory() as folder:
        experiment = suite.experiment(fault)
        rows = asyncio.run(answered(suite, experiment, Path(folder)))
        lines = {line.query_id: line for line in explained(suite, experiment, list(rows.values()), Path(folder))}
    good = {case.query.query_id for case in suite.cases if is_good(case, rows[case.query.query_id].llm_answer)}
    asked = sum(case.answerable for case in suite.cases)
    print(f"healthy{f' ({fault} box)' * bool(fault)}: {len(good)} of {asked} answerable are good; ", end="")
    print(f"{len(lines)} got a cause, {len(good & lines.keys())} of them good answers")
    for id_, line in sorted(lines.items()):
        print(
            f"    {id_}{' (GOOD)' * (id_ in good)}: {_title(line)} <- {rows[id_].llm_answer!r}; {line.evidence[:140]}"
        )
    return {id_: row.llm_answer for id_, row in rows.items()}


def planted(fault: str, before: Mapping[str, str], log: TextIO | None) -> Counter[str]:
    """Plant a fault, explain what came of it, and count and print what its trials were called."""
    suite = Suite()
    experiment, was = suite.experiment(fault), {case.query.query_id: case for case in suite.cases}
    good = {id_ for id_, case in was.items() if case.answerable and is_good(case, before[id_])}
    with tempfile.TemporaryDirectory() as folder:
        rows = asyncio.run(answered(suite, experiment, Path(folder)))
        if fault.startswith("d_"):
            new = altered(fault, [case for case in suite.cases if case.answerable])
            acted = {id_ for id_ in good if new[id_] != was[id_]}
            suite.with_gold(new)
            rows = {id_: with_gold(row, new[id_]) if id_ in new else row for id_, row in rows.items()}
        else:
            acted = {id_ for id_ in good if not is_good(was[id_], rows[id_].llm_answer)}
        lines = {line.query_id: line for line in explained(suite, experiment, list(rows.values()), Path(folder))}
    cases = {case.query.query_id: case for case in suite.cases}
    counts, wrong, examples = Counter[str](acted=len(acted)), Counter[str](), dict[str, str]()
    for id_ in sorted(acted):
        line, row, case = lines.get(id_), rows[id_], cases[id_]
        called_right = line is None and rightness(case, row.llm_answer, row.abstained).right
        fits = [line and line.cause == cause and line.detail.startswith(part) for cause, part, _ in FAULTS[fault]]
        mends = [bool(line and words in line.remedy) for *_, words in FAULTS[fault]]
        both = any(map(all, zip(fits, mends, strict=True)))
        counts.update(named=any(fits), remedy=any(mends), both=both, called_right=called_right)
        name = _title(line) if line else f"no cause{' (called right)' * called_right}"
        if not both:
            wrong[name] += 1
            why = f"{line.evidence[:160]} | remedy: {line.remedy[:60]}" if line else ""
            examples.setdefault(name, f"{id_}: {row.llm_answer[:110]!r}, gold {case.ground_truth[:90]!r}; {why}")
        if log:
            told = {"fault": fault, "query_id": id_, "both": both, "name": name, "gold": case.ground_truth}
            told |= {"before": before[id_], "answer": row.llm_answer, "line": line.model_dump() if line else None}
            print(json.dumps(told, ensure_ascii=False), file=log)
    elsewhere = Counter(_title(line) for id_, line in lines.items() if id_ in good - acted)
    print(f"{fault:20} acted {counts['acted']:3}  named {counts['named']:3}  remedy {counts['remedy']:3}", end="  ")
    print(f"both {counts['both']:3}  called right {counts['called_right']:2}", end="  ")
    print(", ".join(f"{n} {name}" for name, n in wrong.most_common()) or "-", flush=True)
    for name, example in examples.items():
        print(f"        {name} <- {example}")
    if elsewhere:
        print(f"        of good answers that it left good: {dict(elsewhere)}")
    return counts


def _share(name: str, counts: Sequence[Counter[str]]) -> None:
    total = sum(counts, Counter[str]())
    acted, unseen = total["acted"], total["called_right"]
    for what, of in ((name, acted), (f"    without {unseen} called right", acted - unseen)):
        shares = ", ".join(f"{key} {total[key] / max(of, 1):.1%}" for key in ("named", "remedy", "both"))
        print(f"{what}: of {of} trials {shares}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fault", choices=tuple(FAULTS), action="append", help="only these; default: all")
    parser.add_argument("--log", type=Path, help="a line of JSON for each trial that a fault acted on")
    chosen = parser.parse_args()
    before = healthy()
    healthy("black")
    print()
    counts: dict[str, Counter[str]] = {}
    log = chosen.log.open("w", encoding="utf-8") if chosen.log else None
    for fault in chosen.fault or FAULTS:
        counts[fault] = planted(fault, before, log)
    if log:
        log.close()
    print()
    for family in sorted({fault[0] for fault in counts}):
        _share(f"({family})", [counts[fault] for fault in counts if fault[0] == family])
    _share("all", list(counts.values()))
    _share("all that were in the first run", [counts[fault] for fault in counts if fault not in ADDED])


if __name__ == "__main__":
    main()
