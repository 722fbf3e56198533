"""Documents that have changed.

The questions that are affected, the place of each quote, and corrections that are safe.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Collection as Some
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rag_harness.authoring.kb.query_checks import wrongly_expected
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.authoring.questions.drafts import ANSWERED
from rag_harness.authoring.questions.findings import Finding, Proposal, QuestionWithGold, Report, is_golden, reason
from rag_harness.authoring.questions.review.rows import AFFECTED
from rag_harness.core.errors import DataError
from rag_harness.core.json_text import read_json
from rag_harness.core.text.comparison import numbered, with_single_blanks
from rag_harness.core.text.terms import figures, terms
from rag_harness.core.types import Evidence, Expectation
from rag_harness.data.query_lines import rows_of_line, with_turns
from rag_harness.records.document_ranking import document_of
from rag_harness.records.expectations import tells_by_words
from rag_harness.records.files import PREVIOUS
from rag_harness.records.row import numbered_lines
from rag_harness.retrieval.chunking.markdown import read_headings

# Corrects a file of questions where that is safe, and marks the rows that a person must look at.


def mended(file: Path, report: Report) -> str:
    """Return the lines of a file of questions. Rows without findings stay byte for byte.

    Quotes and page names are replaced if that is safe. Other affected questions are marked: ``reviewed`` becomes "no",
    ``reviewed_by`` is removed, and ``affected`` says why. The mark is removed when nothing is wrong any more.

    Raises:
        DataError: the file is a golden set.
    """
    if is_golden(file):
        raise DataError(f"-o mends files of questions (.jsonl), and {file} is a golden set. Leave -o out, and edit it.")
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    found = (line for line in file.read_text(encoding="utf-8-sig").split("\n") if line.strip())
    return "".join(f"{_line(line, report)}\n" for line in found)


def _line(line: str, report: Report) -> str:
    raw = read_json(line)
    rows = rows_of_line(raw)
    if not any(_is_touched(row, report) for row in rows):
        return line
    changed = [_row(row, report.found.get(row["query_id"], ())) if _is_touched(row, report) else row for row in rows]
    if "scenario" in raw:
        changed[0].pop("query_id")
    return json.dumps(with_turns(raw, changed) if "turns" in raw else changed[0], ensure_ascii=False)


def _is_touched(row: dict[str, Any], report: Report) -> bool:
    return bool(report.found.get(row["query_id"])) or AFFECTED in row.get("metadata", {})


def _row(row: dict[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    safe = [each for each in findings if each.mends]
    left = [each for each in findings if each.affects and not each.mends]
    evidence = [_quote(quote, safe) for quote in row.get("evidence") or ()]
    changed = {**row, **({"evidence": evidence} if evidence else {}), **_names(row, evidence, safe)}
    # The reviewer has read other documents than these.
    gone = {AFFECTED, *(("reviewed_by",) if left else ())}
    kept = {key: value for key, value in (row.get("metadata") or {}).items() if key not in gone}
    marks = {"reviewed": "no", AFFECTED: "; ".join(map(reason, left))} if left else {}
    return {**changed, "metadata": {**kept, **marks}} if kept or marks or "metadata" in row else changed


def _quote(quote: dict[str, Any], safe: Sequence[Finding]) -> dict[str, Any]:
    """Return a quote with its current text and page. If it is not safe to mend, at most its page's new name is set."""
    filename, text = quote["filename"].strip(), quote["quote"].strip()
    for each in safe:
        if each.old and (each.filename, each.old) == (filename, text):
            return {**quote, "filename": each.new_file, "quote": each.new}
    renamed = {each.filename: each.new_file for each in safe if each.what == "page renamed"}
    return {**quote, "filename": renamed.get(filename, quote["filename"])}


def _names(row: dict[str, Any], evidence: Sequence[dict[str, Any]], safe: Sequence[Finding]) -> dict[str, Any]:
    """Return the pages of a row under their new names. If a page has lost its quotes, their new pages replace it."""
    moves = {each.filename: each.new_file for each in safe if each.new_file != each.filename}
    if not moves:
        return {}
    still = {quote["filename"] for quote in evidence}
    found: dict[str, Any] = {}
    given = row.get("context_reference")
    if given:
        names = [given] if isinstance(given, str) else given
        kept = [new for name in names for new in _now(name, moves, still)]
        found["context_reference"] = list(dict.fromkeys(kept))
    if row.get("qrels"):
        found["qrels"] = {new: gain for name, gain in row["qrels"].items() for new in _now(name, moves, still)}
    return found


def _now(name: str, moves: dict[str, str], still: set[str]) -> list[str]:
    plain = name.strip()
    if plain not in moves:
        return [name]
    return [name, moves[plain]] if plain in still else [moves[plain]]


LIKE = 0.6
"""From this share of common words, in the same order, a passage counts as the quote in other words."""
FEWEST_WORDS = 3
"""How many words beside its figures a quote needs to be recognised when its figures have changed."""
TELLING = 5
"""How many words a quote needs to identify its page: "30 days" may be in any page."""
_LOOKED_AT = 5
"""How many passages with most of a quote's words are compared; the most similar is taken."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[^\w\s]")
_FIGURE = r"(\d+(?:[.,:]\d+)*)"
_EMPHASIS = "*_`"
_TARGET = re.compile(r"\]\([^()\s]*(?:\s\"[^\"]*\")?\)")
_MARKS = frozenset("*_`~\\[]")
_GAP = r"(?:[\s*_`~\\\[]|\]\([^()\s]*\)|\])"
_ALIKE = ({"'", "’", "‘"}, {'"', "“", "”"}, {"-", "–", "—", "‑"})
_PIECE = re.compile(r"\S(?:.*?[.!?](?=\s)|.*)")


class QuotedPassage(NamedTuple):
    """The passage ``text[start:end]`` of a page that is or was a quote. ``figures``: pairs of old and new ones."""

    text: str
    figures: tuple[tuple[str, str], ...] = ()


def holds_quote(text: str, quote: str) -> bool:
    """Whether a text has a quote word for word, without cutting a figure: ``€10`` is not in ``€100``."""
    start = text.find(quote)
    while start >= 0 and _cuts_figure(text, start, start + len(quote)):
        start = text.find(quote, start + 1)
    return start >= 0


def _cuts_figure(text: str, start: int, end: int) -> bool:
    behind = re.match(r"[.,:]?\d", text[end : end + 2]) if text[end - 1 : end].isdigit() else None
    before = re.search(r"\d[.,:]?$", text[max(0, start - 2) : start]) if text[start : start + 1].isdigit() else None
    return bool(behind or before)


def otherwise_marked(text: str, quote: str) -> QuotedPassage | None:
    """Return the passage that differs from a quote only in white space, emphasis, link targets and typography."""
    if not _words(quote):
        return None
    match = re.search(_pattern(quote), text)
    return QuotedPassage(_with_marks(text, match.start(), match.end())) if match else None


def with_other_figures(text: str, quote: str) -> QuotedPassage | None:
    """Return the passage that also differs in figures; of several, the one with the fewest changed figures."""
    old = [token for token in _tokens(quote) if token[0].isdigit()]
    if not old or len(_words(quote)) < FEWEST_WORDS:
        return None
    found = [
        QuotedPassage(
            _with_marks(text, match.start(), match.end()),
            tuple((was, now) for was, now in zip(old, match.groups(), strict=True) if was != now),
        )
        for match in re.finditer(_pattern(quote, _FIGURE), text)
    ]
    return min(found, key=lambda each: len(each.figures), default=None)


def reworded(text: str, quote: str) -> QuotedPassage | None:
    """Return the passage with most of a quote's words in their order. It has as many sentences or lines."""
    wanted = _words(quote)
    size = max(1, len(list(_pieces(quote))))
    ranked = sorted(_windows(text, size), key=lambda each: -len(set(each[1]) & set(wanted)))[:_LOOKED_AT]
    rated = [(SequenceMatcher(None, wanted, words, autojunk=False).ratio(), passage) for passage, words in ranked]
    best = max(rated, key=lambda each: each[0], default=(0.0, ""))
    return QuotedPassage(best[1]) if len(wanted) >= FEWEST_WORDS and best[0] >= LIKE else None


def tells_page(quote: str) -> bool:
    """Whether a quote has enough words to identify its page: another page with these words is its new place."""
    return len(_words(quote)) >= TELLING


def pieces(text: str) -> list[str]:
    """Return the sentences, list items and table rows of a text, verbatim."""
    return [text[start:end] for start, end in _pieces(text)]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    for match in _PIECE.finditer(text):
        yield match.start(), match.start() + len(match[0].rstrip())


@lru_cache(maxsize=4)
def _windows(text: str, size: int) -> Sequence[tuple[str, Sequence[str]]]:
    spans = list(_pieces(text))
    groups = [spans[first : first + size] for first in range(max(1, len(spans) - size + 1))] if spans else []
    windows = [text[group[0][0] : group[-1][1]] for group in groups]
    return [(window, _words(window)) for window in windows]


def _words(text: str) -> list[str]:
    return [token.casefold() for token in _tokens(text) if token[0].isalnum()]


def _tokens(text: str) -> list[str]:
    return [token for token in _TOKEN.findall(_TARGET.sub("]", text)) if token not in _MARKS]


def _pattern(quote: str, figure: str = "") -> str:
    """Return a pattern for a quote with any marks between its words; ``figure`` replaces each of its figures."""
    tokens = _tokens(quote)
    parts = [r"(?<![^\W_])(?<!\d[.,:])"] if tokens[0][0].isalnum() else []
    for number, token in enumerate(tokens):
        if number:
            parts.append(f"{_GAP}{'+' if tokens[number - 1].isalpha() and token.isalpha() else '*'}")
        parts.append(figure if figure and token[0].isdigit() else _signs(token))
    return "".join([*parts, r"(?![^\W_])" if tokens[-1].isalpha() else "", r"(?![.,:]?\d)"])


def _signs(token: str) -> str:
    alike = next((signs for signs in _ALIKE if token in signs), None)
    return f"[{re.escape(''.join(sorted(alike)))}]" if alike else re.escape(token)


def _with_marks(text: str, start: int, end: int) -> str:
    """Extend a passage by a link that it begins or ends in, and by emphasis next to it."""
    if text[start:end].count("](") > text[start:end].count("[") and text[start - 1 : start] == "[":
        start -= 1
    if text[start:end].count("[") > text[start:end].count("]") and (target := _TARGET.match(text, end)):
        end = target.end()
    ahead, after = text[max(0, start - 3) : start], text[end : end + 3]
    before, behind = ahead[len(ahead.rstrip(_EMPHASIS)) :], after[: len(after) - len(after.lstrip(_EMPHASIS))]
    marks = before if before == behind[::-1] else ""
    return text[start - len(marks) : end + len(marks)]


PROPOSED = 3
_PAGES_COMPARED = 10


class Pages:
    """A collection, searched for the gold of questions.

    Args:
        collection: the documents as they are now.
        asked: the questions.
        unread: names of files that exist and could not be read.
    """

    def __init__(
        self, collection: DocumentCollection, asked: Sequence[QuestionWithGold], unread: Some[str] = ()
    ) -> None:
        self.collection: DocumentCollection = collection
        self.unread: frozenset[str] = frozenset(unread)
        self._asked = asked
        self.texts: Mapping[str, str] = {each.doc_id: each.text for each in collection.documents}
        self.holding = cache(self._holding)

    def name_of(self, gold: str) -> str:
        """Return the page of a gold id, which names a page, a heading or a chunk."""
        page = gold.rpartition("#")[0]
        return gold if gold in self.texts or not page else page

    def has_heading(self, gold: str) -> bool:
        """Whether the page has the heading that gold names. Gold that names a page or a chunk has no heading."""
        page, _, anchor = gold.rpartition("#")
        if gold in self.texts or page not in self.texts or anchor.rpartition("_")[2].isdigit() or anchor.isdigit():
            return True
        return anchor in numbered(heading.title for heading in read_headings(self.texts[page]))

    def _holding(self, quote: str) -> Mapping[str, str]:
        """Return the pages with a quote, even if marked up differently, and the passage as it is there.

        Only the first pages of a search by words are looked at.
        """
        found: dict[str, str] = {}
        for name in dict.fromkeys(hit.chunk.doc_id for hit in self.collection.nearest(quote, _PAGES_COMPARED)):
            text = self.texts[name]
            if holds_quote(text, quote):
                found[name] = quote
            elif marked := otherwise_marked(text, quote):
                found[name] = marked.text
        return found

    @cached_property
    def renamed(self) -> Mapping[str, str]:
        """Maps pages that are gone to the pages that have all of their quotes, from all questions."""
        quotes: dict[str, set[str]] = {}
        for asked in self._asked:
            for quote in asked.quotes:
                if quote.filename and quote.filename not in self.texts:
                    quotes.setdefault(quote.filename, set()).add(quote.quote)
        named = {name for asked in self._asked for name in map(self.name_of, asked.pages)} | quotes.keys()
        found: dict[str, str] = {}
        for name, all_quotes in quotes.items():
            holders = Counter(page for quote in sorted(all_quotes) for page in self.holding(quote))
            new = [page for page, count in holders.items() if count == len(all_quotes)]
            # A page that questions already name is not the new name of another page.
            unknown = [page for page in new if page not in named]
            if len(unknown or new) == 1 and any(map(tells_page, all_quotes)):
                found[name] = (unknown or new)[0]
        return found

    def of_like_name(self, name: str) -> str:
        """Return the only page in another folder with the file name of a page that is gone; "" if there is none."""
        last = name.rpartition("/")[2]
        found = [page for page in self.texts if page.rpartition("/")[2] == last]
        return found[0] if len(found) == 1 else ""

    def nearest(self, wanted: str, most: int = PROPOSED) -> tuple[Proposal, ...]:
        """Return the passages nearest to a text by words, one from each chunk, current pages first."""
        hits = self.collection.nearest(wanted, _PAGES_COMPARED)
        ranked = sorted(hits, key=lambda hit: hit.chunk.doc_id in self.collection.superseded)
        words = terms(wanted)
        return tuple(
            Proposal(
                hit.chunk.doc_id,
                self.best_piece(words, hit.chunk.text),
                round(hit.score, 2),
                round(self.collection.covered(words, hit.chunk.text), 2),
            )
            for hit in ranked[:most]
        )

    def best_piece(self, words: frozenset[str], text: str) -> str:
        """Return the sentence, list item or row of a text with most of the given words, weighted by rarity."""
        return max(pieces(text), key=lambda piece: self.collection.covered(words, piece), default=text)


def quote_findings(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    """Yield findings about quotes that are not in their page word for word."""
    for quote in asked.quotes:
        names = [quote.filename] if quote.filename else [name for each in asked.pages if (name := pages.name_of(each))]
        if pages.unread.intersection(names):
            continue
        texts = [pages.texts[name] for name in names if name in pages.texts]
        if any(holds_quote(text, quote.quote) for text in texts):
            continue
        yield from _changed(asked, quote, names[0] if names else "", pages)


def _changed(asked: QuestionWithGold, quote: Evidence, filename: str, pages: Pages) -> Iterator[Finding]:
    text = pages.texts.get(filename)
    marked = otherwise_marked(text, quote.quote) if text is not None else None
    if marked is not None:
        yield _marked_otherwise(quote, filename, marked.text)
        return
    elsewhere = pages.holding(quote.quote)
    moved_to = pages.renamed.get(filename) if pages.renamed.get(filename) in elsewhere else None
    if moved_to or len(elsewhere) == 1:
        target = moved_to or next(iter(elsewhere))
        is_safe = bool(moved_to) or tells_page(quote.quote)
        why = "" if is_safe else "too short to be sure that it is the same"
        yield Finding("moved", filename, why, quote.quote, elsewhere[target], target, mends=is_safe)
        return
    now = pages.renamed.get(filename, filename)
    yield from _lost(asked, quote, filename, now, pages)


def _marked_otherwise(quote: Evidence, filename: str, new: str) -> Finding:
    is_space = with_single_blanks(new) == with_single_blanks(quote.quote)
    what, why = ("white space", "") if is_space else ("markup", "the words are the same")
    return Finding(
        "white space" if what == "white space" else "markup",
        filename,
        why,
        quote.quote,
        new,
        filename,
        affects=not is_space,
        mends=True,
    )


def _lost(asked: QuestionWithGold, quote: Evidence, filename: str, now: str, pages: Pages) -> Iterator[Finding]:
    """Yield findings that need a person: other figures, other words, or nothing like the quote in the page."""
    text = pages.texts.get(now, "")
    figured = with_other_figures(text, quote.quote)
    found = figured or reworded(text, quote.quote)
    if found is None:
        several = sorted(pages.holding(quote.quote))
        why = f"it is in {', '.join(several)}" if several else ""
        near = pages.nearest(f"{asked.alone or asked.text} {quote.quote}")
        yield Finding("gone", filename, why, quote.quote, proposals=near)
        return
    changes = ", ".join(f"{was} -> {is_now}" for was, is_now in found.figures)
    yield Finding("figure" if figured else "reworded", filename, changes, quote.quote, found.text, now)
    yield from _answer(asked, quote, found)


def _answer(asked: QuestionWithGold, quote: Evidence, found: QuotedPassage) -> Iterator[Finding]:
    """Yield a finding if the ground truth, or an expectation, has a figure that the page no longer has."""
    gone = figures(quote.quote) - figures(found.text)
    if outdated := gone & figures(asked.ground_truth):
        said = ", ".join(sorted(outdated))
        yield Finding("answer", quote.filename, f"the ground truth says {said}", asked.ground_truth)
    for each in asked.expect:
        if gone & _figures_wanted(each):
            yield Finding("expectation", quote.filename, f"{each}: the page no longer says so. Mend it.")


def _figures_wanted(each: Expectation) -> frozenset[str]:
    """Return the figures that an answer has to have; figures of its form, such as its length, are none of them."""
    if each.negated or not tells_by_words(each):
        return frozenset()
    if each.kind == "number":
        return frozenset({f"{each.wanted:g}"})
    return figures(json.dumps(each.wanted)) if isinstance(each.wanted, str | list) else frozenset()


def check(asked: Sequence[QuestionWithGold], collection: DocumentCollection, unread: Some[str] = ()) -> Report:
    """Check questions against documents.

    Args:
        asked: the questions.
        collection: the documents as they are now.
        unread: names of files that exist and could not be read.
    """
    pages = Pages(collection, asked, unread)
    found = {each.name: list(_findings(each, pages)) for each in asked}
    return Report(
        {name: findings for name, findings in found.items() if findings},
        len(asked),
        sum(len(each.quotes) for each in asked),
        len(collection.documents),
        sum(each.answerable and not each.quotes and bool(each.pages) for each in asked),
        sum(not (each.answerable or each.alone) for each in asked),
        {each.name: each.stands_on for each in asked if each.stands_on},
        [each.name for each in asked if each.answerable and not each.quotes and not each.pages],
    )


def _findings(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    quotes = list(quote_findings(asked, pages))
    yield from quotes
    yield from _pages(asked, pages, {each.filename for each in quotes if each.what == "moved"})
    if asked.expect:
        documents = {**dict.fromkeys(pages.unread, ""), **pages.texts}
        for said in wrongly_expected(asked.expect, asked.ground_truth, asked.answerable, documents):
            yield Finding("expectation", why=said)
    if not asked.answerable:
        yield from _answered(asked, pages)
    elif len({quote.filename for quote in asked.quotes}) > 1:
        yield from _one_page(asked, pages)


def _pages(asked: QuestionWithGold, pages: Pages, moved: set[str]) -> Iterator[Finding]:
    """Yield findings about pages that a question names and that do not exist."""
    for gold in dict.fromkeys([*asked.pages, *(quote.filename for quote in asked.quotes if quote.filename)]):
        name = pages.name_of(gold)
        if name in pages.texts:
            if not pages.has_heading(gold):
                yield Finding("heading gone", name, f"no heading has the anchor of {gold!r}")
        elif name in pages.unread:
            yield Finding("page unread", name, "the file is there, and cannot be read")
        elif new := pages.renamed.get(name):
            yield Finding("page renamed", name, "all quotes of it are there", new_file=new, mends=True)
        elif name not in moved:
            yield _gone(asked, name, pages)


def _gone(asked: QuestionWithGold, name: str, pages: Pages) -> Finding:
    like = pages.of_like_name(name)
    near = () if like else pages.nearest(f"{asked.alone or asked.text} {asked.ground_truth}")
    return Finding("page gone", name, "a page of that file name is" if like else "", new_file=like, proposals=near)


def _answered(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    """Yield a finding if a passage has every word of a question that nothing should answer."""
    words = terms(asked.alone)
    for hit in pages.collection.nearest(asked.alone) if words else ():
        chunk = hit.chunk
        share = pages.collection.covered(words, chunk.text)
        if share >= ANSWERED and chunk.doc_id not in asked.looked_at:
            quote = pages.best_piece(words, chunk.text)
            near = (Proposal(chunk.doc_id, quote, round(hit.score, 2), 1.0),)
            yield Finding("may be answered", why="a passage has every word of it", proposals=near)
            return


def _one_page(asked: QuestionWithGold, pages: Pages) -> Iterator[Finding]:
    """Yield a finding if one page has all quotes of a question that should need several pages."""
    first, *others = asked.quotes
    for name in pages.holding(first.quote):
        if all(holds_quote(pages.texts[name], quote.quote) or name in pages.holding(quote.quote) for quote in others):
            yield Finding("one page holds all", name, "every quote is in this page", new_file=name)
            return


Why = Literal["own row", "gold", "retrieved", "near", "turns"]
WHYS: Mapping[Why, str] = {
    "own row": "by their own row",
    "gold": "by their gold",
    "retrieved": "by what was retrieved for them",
    "near": "by a changed page that has their words",
    "turns": "by an earlier turn of their conversation",
}
"""The reasons in the order in which they are checked, worded for a sentence."""


@dataclass(frozen=True, slots=True)
class DatedQuestion:
    """What decides whether a question is affected; ``pages`` are those of its gold.

    ``text`` is what is searched for; for a later turn, words that say what it is about. ``stands_on`` is the turn
    before it, empty for other questions.
    """

    name: str
    text: str
    pages: frozenset[str]
    stands_on: str = ""


@dataclass(frozen=True, slots=True)
class DataChange:
    """The changes since a revision: ``pages`` that are new, changed or gone, and questions with a changed row."""

    pages: frozenset[str]
    questions: frozenset[str]


def affected(
    questions: Iterable[DatedQuestion],
    change: DataChange,
    retrieved: Mapping[str, Some[str]],
    collection: DocumentCollection | None,
    k: int,
) -> dict[str, Why]:
    """Return the questions that a change affects, each with the first reason.

    Args:
        questions: all of them; turns of a conversation in their order.
        change: the change of documents and questions.
        retrieved: by query id, the documents that earlier runs retrieved.
        collection: the current documents; None if none has changed.
        k: a changed page affects a question if it is among the first ``k`` hits of a search by words.
    """
    found: dict[str, Why] = {}
    for each in questions:
        why = _why(each, change, retrieved, collection, k) or ("turns" if each.stands_on in found else None)
        found |= {each.name: why} if why else {}
    return found


def _why(
    asked: DatedQuestion,
    change: DataChange,
    retrieved: Mapping[str, Some[str]],
    collection: DocumentCollection | None,
    k: int,
) -> Why | None:
    if asked.name in change.questions:
        return "own row"
    if asked.pages & change.pages:
        return "gold"
    if not change.pages.isdisjoint(retrieved.get(asked.name, ())):
        return "retrieved"
    near = collection.nearest(asked.text, k) if collection is not None and change.pages else ()
    return "near" if any(hit.chunk.doc_id in change.pages for hit in near) else None


def retrieved_before(output: Path, k: int, is_of: Callable[[str], bool]) -> Mapping[str, frozenset[str]]:
    """Return for each query id the documents of the prompt and of the first ``k`` candidates, from all experiments.

    The newest row of each experiment and query counts, even if it was set aside. ``is_of`` says whether an experiment
    is looked at.
    """
    newest: dict[tuple[str, str], tuple[str, frozenset[str]]] = {}
    for file in [*sorted((output / PREVIOUS).glob("*.jsonl")), *sorted(output.glob("*.jsonl"))]:
        for _, line, _ in numbered_lines(file):
            row = _unvalidated_row(line)
            if row is None or not is_of(row["experiment"]):
                continue
            key, finished = (row["experiment"], row["query_id"]), str(row.get("finished_at", ""))
            if key not in newest or finished >= newest[key][0]:
                newest[key] = finished, _documents(row, k)
    found: dict[str, frozenset[str]] = {}
    for (_, query_id), (_, documents) in newest.items():
        found[query_id] = found.get(query_id, frozenset()) | documents
    return found


def _unvalidated_row(line: bytes) -> dict[str, Any] | None:
    """Return a row without validation. Only the names of its documents are needed."""
    try:
        row = read_json(line)
    except ValueError:
        return None
    wanted = {"experiment", "query_id", "candidates", "retrieved_chunks"}
    return row if isinstance(row, dict) and wanted <= row.keys() and row.get("status") == "ok" else None


def _documents(row: dict[str, Any], k: int) -> frozenset[str]:
    prompt = (chunk["metadata"].get("filename") or document_of(chunk["chunk_id"]) for chunk in row["retrieved_chunks"])
    candidates = (document_of(candidate["chunk_id"]) for candidate in row["candidates"][:k])
    return frozenset([*prompt, *candidates, *(row.get("ranking") or ())[:k]])
