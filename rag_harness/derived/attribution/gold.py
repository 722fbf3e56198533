"""Compares the gold of a case with its row: where each quote was lost, and which pages are outdated. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import Literal

from rag_harness.derived.attribution.contradicted import contradiction
from rag_harness.derived.attribution.sent_passages import are_shortened, is_cut_between, other_version
from rag_harness.derived.attribution.shelf import LEAST_SAME, Shelf, bare, is_part_of, says, with_single_blanks
from rag_harness.measures.ground_truth import carries, needed_quotes, plain_terms, share_within
from rag_harness.measures.quotes import as_shown
from rag_harness.models.reader.current_source import SAME_THING, versions
from rag_harness.models.reader.prompt import PromptSource
from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import RetrievedChunk
from rag_harness.types import Case, Chunk
from rag_harness.words.terms import written_numbers

QuotePlace = Literal[
    "in context",
    "lost in reranking",
    "ranked below k",
    "not found",
    "cut",
    "older",
    "without",
    "another part",
    "left out",
    "not in the index",
    "missing",
]
"""Where a quote is. ``older``: its page came in another version. ``without``: its page came shortened, without it.
``another part``: whole chunks of its page came, and none has it. ``left out``: the index has its page only up to before
it. ``missing``: the content of the index is not known."""
_NOTHING_SHARED = 0.25


@dataclass(frozen=True, slots=True)
class QuoteFact:
    """Where one quote is. An empty ``quote`` stands for the whole page, where a case has no quotes.

    Attributes:
        needed: whether the ground truth depends on it.
        rank: first-stage rank of the first candidate that holds it; None where none does.
        position: position in the context, from 1, of the first chunk that holds it; None where none does.
        version: the piece that came of its page in its place, and that the page does not have; empty where none did.
        sent: number of characters that came of its page or chunk, and the full number, 0 where not known; only for
            ``without``.
    """

    filename: str
    quote: str
    needed: bool
    place: QuotePlace
    rank: int | None = None
    position: int | None = None
    version: str = ""
    sent: tuple[int, int] = (0, 0)

    @property
    def is_there(self) -> bool:
        """Whether the model was given the quote."""
        return self.place == "in context"


@dataclass(frozen=True, slots=True)
class GoldFacts:
    """The gold of a case, compared with its row.

    Attributes:
        quotes: quotes of the evidence, in their order.
        superseded: outdated pages with a chunk in the context.
        stale: figures that the answer has from these pages only: figure and page.
        doubt: why the gold itself may be wrong; empty where nothing says so.
        contradicted: how the ground truth contradicts the evidence, with which the answer agrees; empty where it does
            not.
        given: number of chunks in the context.
        carried: whether one of them has the figures and words of the ground truth, wherever its quotes are.
        nothing: why the gold cannot be used; empty where it can.
    """

    quotes: tuple[QuoteFact, ...] = ()
    superseded: tuple[str, ...] = ()
    stale: tuple[tuple[str, str], ...] = ()
    doubt: str = ""
    nothing: str = ""
    contradicted: str = ""
    given: int = 0
    carried: bool = False

    @property
    def needed(self) -> tuple[QuoteFact, ...]:
        """The quotes that the ground truth depends on."""
        return tuple(fact for fact in self.quotes if fact.needed)

    @property
    def lost(self) -> tuple[QuoteFact, ...]:
        """The needed quotes that the model was not given."""
        return tuple(fact for fact in self.needed if not fact.is_there)


def gold_facts(case: Case, row: ExperimentResult, shelf: Shelf | None) -> GoldFacts:
    """Compare the gold with a row. Without a ``shelf``, the content of index and pages is not known."""
    case = as_shown(case, row)
    superseded = _superseded(case, row, shelf)
    return GoldFacts(
        tuple(_quotes(case, row, shelf)),
        superseded,
        tuple(_stale(case, row, superseded, shelf)),
        doubt_of(case),
        _nothing(case),
        contradiction(case, row.llm_answer, [_page_text(doc_id, row, shelf) for doc_id in _about(case)]),
        len(row.retrieved_chunks),
        any(carries(chunk.text, case.ground_truth) for chunk in row.retrieved_chunks),
    )


def doubt_of(case: Case) -> str:
    """Return why evidence and ground truth do not belong together: no common figure, and hardly a common word.

    Words of the question do not count. Of the 160 cases of the shipped study none is doubted. Where each gets the
    evidence of another case, 140 are.
    """
    quoted = " ".join(one.quote for one in case.evidence)
    if not case.answerable or not quoted.strip() or not case.ground_truth.strip():
        return ""
    figures = written_numbers(case.ground_truth) - written_numbers(case.query.text)
    in_words = share_within(plain_terms(quoted), plain_terms(case.ground_truth) - plain_terms(case.query.text))
    if figures & written_numbers(quoted) or in_words >= _NOTHING_SHARED:
        return ""
    also = " and none of its figures" if figures else ""
    return f"the evidence carries {in_words:.0%} of what the ground truth adds to the question{also}"


def _nothing(case: Case) -> str:
    if not case.answerable or case.ground_truth.strip() or case.evidence:
        return ""
    return "the case has neither ground truth nor evidence"


def _quotes(case: Case, row: ExperimentResult, shelf: Shelf | None) -> Iterator[QuoteFact]:
    needed = set(needed_quotes(case))
    for one in case.evidence:
        if one.quote.strip():
            yield _place(QuoteFact(one.filename, one.quote, one.quote in needed, "missing"), row, shelf)
    if not needed and case.answerable:
        for doc_id in case.context_reference:
            fact = _place(QuoteFact(doc_id, "", True, "missing"), row, shelf)
            short = fact.is_there and _lacks_the_answer(case, doc_id, row, shelf)
            yield _without(fact, row, shelf) if short else fact


def _place(fact: QuoteFact, row: ExperimentResult, shelf: Shelf | None) -> QuoteFact:
    """Return where a quote or a page is, and the rank of the first candidate that holds it."""
    doc_id, quote = fact.filename, fact.quote
    fact = replace(fact, version=_other_version(fact, row, shelf))
    given = [n for n, chunk in enumerate(row.retrieved_chunks) if _holds(chunk, doc_id, quote)]
    if given:
        rank = _rank({row.retrieved_chunks[n].chunk_id for n in given}, row)
        return replace(fact, place="in context", rank=rank, position=given[0] + 1)
    if fact.version:
        return replace(fact, place="older")
    holders: list[Chunk] = []
    if shelf is not None and shelf.knows_index:
        holders = shelf.holding(quote) if quote else shelf.of_page(doc_id)
    return among(fact, row, holders) if holders else _held_by_none(fact, row, shelf)


def _held_by_none(fact: QuoteFact, row: ExperimentResult, shelf: Shelf | None) -> QuoteFact:
    """Return where a quote was lost that no chunk of the index holds, or whose index is not known."""
    came = bool(_of_page(fact.filename, row, shelf))
    if shelf is None or not shelf.knows_index:
        return _of_chunks_that_came(fact, row, shelf) if came else fact
    if not shelf.of_page(fact.filename):
        return replace(fact, place="not in the index")
    if shelf.ends_before(fact.filename, fact.quote):
        return replace(fact, place="left out")
    is_cut = shelf.is_cut(fact.filename, fact.quote)
    return _without(fact, row, shelf) if came and not is_cut else replace(fact, place="cut")


def _of_chunks_that_came(fact: QuoteFact, row: ExperimentResult, shelf: Shelf | None) -> QuoteFact:
    """Return what is wrong with the chunks of a page that came without a quote, where the index is not known."""
    came = [chunk.text for chunk in _of_page(fact.filename, row, shelf)]
    pages = {} if shelf is None else {doc_id: page.text for doc_id, page in shelf.documents.items()}
    every = [(chunk.text, pages.get(chunk.metadata.filename, "")) for chunk in row.retrieved_chunks]
    is_short = are_shortened(every)
    if fact.quote and is_cut_between(fact.quote, came, is_short):
        return replace(fact, place="cut")
    return _without(fact, row, shelf) if is_short or not fact.quote else replace(fact, place="another part")


def _other_version(fact: QuoteFact, row: ExperimentResult, shelf: Shelf | None) -> str:
    """Return what came of a page, or is in the index, in place of a quote, where the page itself is known."""
    if shelf is None or not fact.quote or fact.filename not in shelf.documents:
        return ""
    came = [chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename == fact.filename]
    indexed = [] if shelf.holding(fact.quote) else [chunk.text for chunk in shelf.of_page(fact.filename)]
    return other_version(fact.quote, [*came, *indexed], shelf.bare_page(fact.filename), row.llm_answer)


def among(fact: QuoteFact, row: ExperimentResult, holders: Sequence[Chunk]) -> QuoteFact:
    """Return where a quote was lost that chunks of the index hold."""
    if sent := next(_shortened(row.retrieved_chunks, holders), None):
        return replace(fact, place="without", sent=sent)
    rank = _rank({chunk.chunk_id for chunk in holders}, row)
    if rank is None:
        return replace(fact, place="not found")
    return replace(
        fact, place="lost in reranking" if rank <= len(row.retrieved_chunks) else "ranked below k", rank=rank
    )


def _shortened(given: Sequence[RetrievedChunk], holders: Sequence[Chunk]) -> Iterator[tuple[int, int]]:
    """Yield the length of each given chunk, and of the index's chunk that it is a part of, by its id or text."""
    for chunk in given:
        for whole in holders:
            is_same = whole.chunk_id == chunk.chunk_id
            # Where the id tells the chunk, a few words are enough, or none.
            least = 0 if is_same else LEAST_SAME
            if len(chunk.text) < len(whole.text) and is_part_of(chunk.text, bare(whole.text), least):
                yield len(with_single_blanks(chunk.text)), len(with_single_blanks(whole.text))


def _without(fact: QuoteFact, row: ExperimentResult, shelf: Shelf | None) -> QuoteFact:
    """Say that a page in the context came without a quote, and how much of the page came."""
    came = sum(len(chunk.text) for chunk in _of_page(fact.filename, row, shelf))
    whole = len(shelf.page_text(fact.filename)) if shelf is not None else 0
    return replace(fact, place="without", position=None, sent=(came, whole if whole > came else 0))


def _of_page(doc_id: str, row: ExperimentResult, shelf: Shelf | None) -> list[RetrievedChunk]:
    """Return the chunks that came of a page: by its name, or by its text where a service has other names."""
    page = shelf.bare_page(doc_id) if shelf is not None else ""
    known = shelf.documents if shelf is not None else {}
    return [
        chunk
        for chunk in row.retrieved_chunks
        if chunk.metadata.filename == doc_id or (chunk.metadata.filename not in known and is_part_of(chunk.text, page))
    ]


def _lacks_the_answer(case: Case, doc_id: str, row: ExperimentResult, shelf: Shelf | None) -> bool:
    """Return whether a page has what the ground truth says, and no given chunk of any page has it."""
    page = shelf.page_text(doc_id) if shelf is not None else ""
    given = " ".join(chunk.text for chunk in row.retrieved_chunks)
    return carries(page, case.ground_truth) and not carries(given, case.ground_truth)


def _page_text(doc_id: str, row: ExperimentResult, shelf: Shelf | None) -> str:
    """Return the text of a page; the given chunks where the page is not known."""
    known = shelf.page_text(doc_id) if shelf is not None else ""
    return known or "\n".join(chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename == doc_id)


def _holds(chunk: RetrievedChunk, doc_id: str, quote: str) -> bool:
    return says([chunk.text], quote) if quote else chunk.metadata.filename == doc_id


def _rank(chunk_ids: Set[str], row: ExperimentResult) -> int | None:
    return next((n for n, candidate in enumerate(row.candidates, 1) if candidate.chunk_id in chunk_ids), None)


def _superseded(case: Case, row: ExperimentResult, shelf: Shelf | None) -> tuple[str, ...]:
    """Return the outdated pages on the subject in the context, without those that the question is about."""
    given = dict.fromkeys(chunk.metadata.filename for chunk in row.retrieved_chunks)
    outdated = outdated_pages(row, shelf)
    about = _about(case)
    return tuple(
        doc_id
        for doc_id in given
        if doc_id in outdated and doc_id not in about and (outdated[doc_id] in about or _same_matter(case, row, doc_id))
    )


def outdated_pages(row: ExperimentResult, shelf: Shelf | None) -> Mapping[str, str]:
    """Return the outdated pages, each with the page that replaced it; those of the context where no other are known."""
    return shelf.superseded if shelf is not None and shelf.superseded else _said_in(row)


def _about(case: Case) -> set[str]:
    return {*case.context_reference, *(one.filename for one in case.evidence)}


def _same_matter(case: Case, row: ExperimentResult, doc_id: str) -> bool:
    """Return whether a chunk of a page has most words of a needed quote. Then it is about the same subject."""
    chunks = [plain_terms(chunk.text) for chunk in row.retrieved_chunks if chunk.metadata.filename == doc_id]
    quotes = [words for quote in needed_quotes(case) if (words := plain_terms(quote))]
    return any(share_within(words, quote) >= SAME_THING for words in chunks for quote in quotes)


def _said_in(row: ExperimentResult) -> dict[str, str]:
    """Return pages that another page in the context replaces, by their own text or name, each with that page."""
    chunks = row.retrieved_chunks
    names = {n: chunk.metadata.filename for n, chunk in enumerate(chunks, 1)}
    each = versions(PromptSource(n, chunk.metadata.filename, chunk.text) for n, chunk in enumerate(chunks, 1))
    return {
        names[n]: names[other]
        for n, version in each.items()
        for other, newer in each.items()
        if newer.supersedes(version) and newer.family == version.family
    }


def _stale(
    case: Case, row: ExperimentResult, superseded: Sequence[str], shelf: Shelf | None
) -> Iterator[tuple[str, str]]:
    """Yield the figures that the answer has only from an outdated page on the subject: figure and page."""
    quotes = [one.quote for one in case.evidence]
    current = [chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename not in superseded]
    for doc_id in superseded:
        heir = shelf.superseded.get(doc_id, "") if shelf is not None else ""
        texts = [case.query.text, case.ground_truth, *quotes, *current, *([shelf.page_text(heir)] if shelf else [])]
        old = [chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename == doc_id]
        only = written_numbers(" ".join(old)) - written_numbers(" ".join(texts))
        yield from ((figure, doc_id) for figure in sorted(written_numbers(row.llm_answer) & only))
