"""The gold of a case beside its row: lost quotes, outdated pages, contradicted and mislabelled ground truths."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal

from rag_harness.core.text.comparison import with_single_blanks
from rag_harness.core.text.sentences import sentence_texts
from rag_harness.core.text.terms import CITATION, STOPWORDS, stem, written_numbers
from rag_harness.core.types import Case, Chunk
from rag_harness.diagnosis.corpus_view import (
    LEAST_SAME,
    CorpusView,
    are_shortened,
    bare,
    is_cut_between,
    is_part_of,
    other_version,
    says,
)
from rag_harness.evaluation.measures.answers import as_shown
from rag_harness.evaluation.measures.correctness import (
    Rightness,
    carries,
    needed_quotes,
    plain_terms,
    rightness,
    share_within,
)
from rag_harness.models.reader_prompt import SAME_THING, PromptSource, versions
from rag_harness.records.row import ExperimentResult, RetrievedChunk

# Finds ground truths that contradict their own evidence while the answer agrees with the evidence. Pure.
#
# That is so where three things hold. A figure of the ground truth is in no passage of the evidence. The answer has a
# figure of the evidence in its place. The answer would be right if the ground truth had that figure too: otherwise the
# ground truth's figure may be computed from the evidence. Names of months and weekdays count as figures. The place of a
# figure is known from the words beside it, in the answer or in the evidence: "31 days" against "44 days". The same
# figure in another unit is a contradiction, too.

_MONTHS_AND_DAYS = """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday
"""
_SIGNS = ("€", "£", "$", "eur", "gbp", "usd")
"""Units that may stand before their figure."""
_NAMES = frozenset(_MONTHS_AND_DAYS.split())
_SAME = {
    **dict.fromkeys(("€", "eur", "euros"), "euro"),
    **dict.fromkeys(("$", "usd", "dollars"), "dollar"),
    **dict.fromkeys(("£", "gbp", "pounds"), "pound"),
    "percent": "%",
}
"""Tokens for the same unit."""
_UNITS = {
    name: names.split()[0]
    for names in (
        "% percent pct", "‰ permille", "second seconds sec secs s", "minute minutes min mins", "hour hours hr hrs h",
        "day days", "week weeks", "month months", "year years yr yrs", "milligram milligrams mg", "gram grams g",
        "kilogram kilograms kg kgs kilo kilos", "tonne tonnes ton tons", "pound pounds lb lbs £ gbp",
        "ounce ounces oz", "millimetre millimetres millimeter millimeters mm",
        "centimetre centimetres centimeter centimeters cm", "metre metres meter meters m",
        "kilometre kilometres kilometer kilometers km", "inch inches", "foot feet ft", "yard yards", "mile miles mi",
        "millilitre millilitres milliliter milliliters ml", "litre litres liter liters l", "gallon gallons gal",
        "euro euros eur €", "dollar dollars usd $", "cent cents", "watt watts w", "kilowatt kilowatts kw",
        "volt volts v", "amp amps ampere amperes a", "byte bytes", "kilobyte kilobytes kb", "megabyte megabytes mb",
        "gigabyte gigabytes gb", "terabyte terabytes tb", "millisecond milliseconds ms", "degree degrees °",
    )
    for name in names.split()
}  # fmt: skip
"""Units by their names. "Pounds" may be money or weight; both have one name here, so that they never differ."""
_TOKEN = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+|[€£%‰°]|\$(?=\s?\d)")
_MOST_FIGURES = 12
_SAYS_THE_SAME = 0.5
"""Share of the ground truth's words from which a sentence of a page counts as about the same."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A figure, the tokens beside it in comparable form, and its position in the text."""

    figure: str
    beside: frozenset[str]
    span: tuple[int, int]

    def is_in_place_of(self, other: _Placed) -> bool:
        """Whether two figures have the same role in their texts: the same unit, or the same words before them."""
        return not self.beside or not other.beside or bool(self.beside & other.beside)


def contradiction(case: Case, answer: str, pages: Sequence[str]) -> str:
    """Return how the ground truth contradicts the evidence that the answer agrees with; empty where it does not.

    Args:
        case: question, ground truth and evidence.
        answer: text of the answer.
        pages: texts of the gold pages, used as evidence where the case has no quotes.
    """
    if not case.answerable:
        return ""
    evidence = [one.quote for one in case.evidence if one.quote.strip()] or list(_about(case.ground_truth, pages))
    for mine, its in _pairs(case, answer, evidence):
        start, end = mine.span
        mended = f"{case.ground_truth[:start]}{its.figure}{case.ground_truth[end:]}"
        if rightness(replace(case, ground_truth=mended), answer, abstained=False).right:
            return f"the evidence says {its.figure}, as the answer does, and the ground truth {mine.figure}"
    return _in_unit(case, answer, evidence)


def may_contradict(question: str, ground_truth: str, answer: str) -> bool:
    """Whether an answer has a figure or a unit in place of one in the ground truth."""
    truth, said = _figures(ground_truth), _figures(answer)
    other_figure = bool(truth - said - _figures(question)) and bool(said)
    return other_figure or bool(_other_units(_measured(ground_truth), _measured(answer)))


def _in_unit(case: Case, answer: str, evidence: Sequence[str]) -> str:
    """Return a figure whose unit in the ground truth differs from that in evidence and answer; empty if none does."""
    truth, quoted = _measured(case.ground_truth), _measured(" ; ".join(evidence))
    asked = _measured(case.query.text)
    for figure, mine, its in _other_units(truth, _measured(answer)):
        if its in quoted.get(figure, ()) and mine not in quoted[figure] and mine not in asked.get(figure, ()):
            return f"the evidence says {figure} {its}, as the answer does, and the ground truth {figure} {mine}"
    return ""


def _other_units(truth: Mapping[str, frozenset[str]], said: Mapping[str, frozenset[str]]) -> list[tuple[str, str, str]]:
    """Return figures that both texts have with different units: figure, unit in ``truth``, unit in ``said``."""
    return [
        (figure, next(iter(units)), next(iter(others)))
        for figure, units in truth.items()
        if len(units) == 1 and len(others := said.get(figure, frozenset())) == 1 and others != units
    ]


def _measured(text: str) -> Mapping[str, frozenset[str]]:
    """Return the units beside each figure of a text; figures without a unit are left out."""
    tokens = [token.lower() for token in _TOKEN.findall(CITATION.sub(" ", text).replace("per mille", "‰"))]
    found: dict[str, set[str]] = {}
    for n, token in enumerate(tokens):
        before, behind = tokens[n - 1] if n else "", "".join(tokens[n + 1 : n + 2])
        unit = _UNITS.get(before if before in _SIGNS else behind, "")
        for figure in written_numbers(token) if unit else ():
            found.setdefault(figure, set()).add(unit)
    return {figure: frozenset(units) for figure, units in found.items()}


def _pairs(case: Case, answer: str, evidence: Sequence[str]) -> Iterator[tuple[_Placed, _Placed]]:
    """Yield figures of the ground truth, each with the figure of the evidence that the answer has in its place."""
    truth, said = list(_placed(case.ground_truth)), list(_placed(answer))
    quoted = [each for text in evidence for each in _placed(text)]
    asked, known = _figures(case.query.text), {each.figure for each in quoted}
    # A figure that the ground truth has as often is not in place of another.
    more = Counter(each.figure for each in said) - Counter(each.figure for each in truth)
    right = _once(each for each in (*said, *quoted) if each.figure in known - asked and more[each.figure])
    wrong = [each for each in truth if each.figure not in {each.figure for each in said} | known | asked]
    # With only one figure on each side there is nothing to confuse, whatever the words beside them.
    is_one = len({each.figure for each in right}) == len({each.figure for each in truth} - asked) == 1
    given = asked | (known if len(case.evidence) > 1 else frozenset())
    computed = {its.figure: _computed(its.figure, given) for its in right}
    for mine in wrong:
        summed = mine.figure in _summed({each.figure for each in truth} - {mine.figure})
        in_place: dict[str, _Placed] = {}
        for its in right:
            if (is_one or its.is_in_place_of(mine)) and mine.figure not in computed[its.figure] and not summed:
                in_place.setdefault(its.figure, its)
        yield from ((mine, its) for its in in_place.values())


def _once(placed: Iterable[_Placed]) -> list[_Placed]:
    """Return figures without repetitions next to the same words: an answer may repeat one 20,000 times."""
    return list({(each.figure, each.beside): each for each in placed}.values())


def _computed(figure: str, others: Iterable[str]) -> set[str]:
    """Return sums, differences and products of a figure and others: a ground truth may state such a result."""
    first = _number(figure)
    pairs = [(first, second) for second in map(_number, others) if first is not None and second is not None]
    return _written(value for a, b in pairs for value in (a + b, abs(a - b), a * b))


def _summed(figures: Iterable[str]) -> set[str]:
    """Return the sums of a ground truth's figures: "€87: €39, €19 and €29", or €45 less 15 %."""
    given = [value for value in map(_number, sorted(figures)) if value is not None][:_MOST_FIGURES]
    sums = [sum(some) for count in (2, 3, 4) for some in combinations(given, count)]
    return _written([*sums, *(whole * (1 - part / 100) for whole in given for part in given if part <= 100)])


def _written(values: Iterable[float]) -> set[str]:
    return {each for value in values for each in written_numbers(f"{value:.10g}")}


def _number(figure: str) -> float | None:
    """Return the value of a figure in English notation; None for a time of day, or a name."""
    try:
        return float(figure.replace(",", ""))
    except ValueError:
        return None


def _figures(text: str) -> frozenset[str]:
    names = {word for word in re.findall(r"[a-z]+", text.lower()) if word in _NAMES}
    return written_numbers(text) | names


def _placed(text: str) -> Iterator[_Placed]:
    plain = CITATION.sub(lambda mark: " " * len(mark[0]), text)  # positions stay the same
    found_at = list(_TOKEN.finditer(plain))
    tokens = [each[0].lower() for each in found_at]
    for n, token in enumerate(tokens):
        found = written_numbers(token) or ({token} if token in _NAMES else frozenset())
        for figure in found:
            beside = [tokens[at] for at in (n - 1, n + 1) if 0 <= at < len(tokens)]
            further = [tokens[at] for at in (n - 2, n + 2) if 0 <= at < len(tokens)]
            words = [*beside, *(token for token in further if token not in STOPWORDS and not token[0].isdigit())]
            yield _Placed(figure, frozenset(map(_compared, words)), found_at[n].span())


def _compared(token: str) -> str:
    return _SAME.get(token, stem(token))


def _about(ground_truth: str, pages: Sequence[str]) -> Iterator[str]:
    """Yield the sentences of the gold pages about the same as the ground truth, apart from figures."""
    wanted = plain_terms(ground_truth)
    for sentence in (each for page in pages for each in sentence_texts(page)):
        if wanted and share_within(plain_terms(sentence), wanted) >= _SAYS_THE_SAME:
            yield sentence


# Compares the gold of a case with its row: where each quote was lost, and which pages are outdated. Pure.

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
    """The place of one quote. An empty ``quote`` means the whole page, where a case has no quotes.

    Attributes:
        needed: whether the ground truth depends on the quote.
        rank: first-stage rank of the first candidate with the quote; None without one.
        position: position in the context, from 1, of the first chunk with the quote; None without one.
        version: the piece that its page's chunk has instead, and that the page does not have; empty without one.
        sent: number of characters of its page or chunk that were sent, and the full number, 0 where not known; only for
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


def gold_facts(case: Case, row: ExperimentResult, view: CorpusView | None) -> GoldFacts:
    """Compare the gold with a row. Without a ``view``, the content of index and pages is not known."""
    case = as_shown(case, row)
    superseded = _superseded(case, row, view)
    return GoldFacts(
        tuple(_quotes(case, row, view)),
        superseded,
        tuple(_stale(case, row, superseded, view)),
        doubt_of(case),
        _nothing(case),
        contradiction(case, row.llm_answer, [_page_text(doc_id, row, view) for doc_id in _gold_pages(case)]),
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


def _quotes(case: Case, row: ExperimentResult, view: CorpusView | None) -> Iterator[QuoteFact]:
    needed = set(needed_quotes(case))
    for one in case.evidence:
        if one.quote.strip():
            yield _place(QuoteFact(one.filename, one.quote, one.quote in needed, "missing"), row, view)
    if not needed and case.answerable:
        for doc_id in case.context_reference:
            fact = _place(QuoteFact(doc_id, "", True, "missing"), row, view)
            short = fact.is_there and _lacks_the_answer(case, doc_id, row, view)
            yield _without(fact, row, view) if short else fact


def _place(fact: QuoteFact, row: ExperimentResult, view: CorpusView | None) -> QuoteFact:
    """Return where a quote or a page is, and the rank of the first candidate that holds it."""
    doc_id, quote = fact.filename, fact.quote
    fact = replace(fact, version=_other_version(fact, row, view))
    given = [n for n, chunk in enumerate(row.retrieved_chunks) if _holds(chunk, doc_id, quote)]
    if given:
        rank = _rank({row.retrieved_chunks[n].chunk_id for n in given}, row)
        return replace(fact, place="in context", rank=rank, position=given[0] + 1)
    if fact.version:
        return replace(fact, place="older")
    holders: list[Chunk] = []
    if view is not None and view.knows_index:
        holders = view.holding(quote) if quote else view.of_page(doc_id)
    return among(fact, row, holders) if holders else _held_by_none(fact, row, view)


def _held_by_none(fact: QuoteFact, row: ExperimentResult, view: CorpusView | None) -> QuoteFact:
    """Return where a quote was lost that no chunk of the index holds, or whose index is not known."""
    came = bool(_of_page(fact.filename, row, view))
    if view is None or not view.knows_index:
        return _of_chunks_that_came(fact, row, view) if came else fact
    if not view.of_page(fact.filename):
        return replace(fact, place="not in the index")
    if view.ends_before(fact.filename, fact.quote):
        return replace(fact, place="left out")
    is_cut = view.is_cut(fact.filename, fact.quote)
    return _without(fact, row, view) if came and not is_cut else replace(fact, place="cut")


def _of_chunks_that_came(fact: QuoteFact, row: ExperimentResult, view: CorpusView | None) -> QuoteFact:
    """Return what is wrong with the chunks of a page that came without a quote, where the index is not known."""
    came = [chunk.text for chunk in _of_page(fact.filename, row, view)]
    pages = {} if view is None else {doc_id: page.text for doc_id, page in view.documents.items()}
    every = [(chunk.text, pages.get(chunk.metadata.filename, "")) for chunk in row.retrieved_chunks]
    is_short = are_shortened(every)
    if fact.quote and is_cut_between(fact.quote, came, is_short):
        return replace(fact, place="cut")
    return _without(fact, row, view) if is_short or not fact.quote else replace(fact, place="another part")


def _other_version(fact: QuoteFact, row: ExperimentResult, view: CorpusView | None) -> str:
    """Return what was sent of a page, or is in the index, in place of a quote; empty where the page is not known."""
    if view is None or not fact.quote or fact.filename not in view.documents:
        return ""
    came = [chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename == fact.filename]
    indexed = [] if view.holding(fact.quote) else [chunk.text for chunk in view.of_page(fact.filename)]
    return other_version(fact.quote, [*came, *indexed], view.bare_page(fact.filename), row.llm_answer)


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


def _without(fact: QuoteFact, row: ExperimentResult, view: CorpusView | None) -> QuoteFact:
    """Say that a page in the context came without a quote, and how much of the page came."""
    came = sum(len(chunk.text) for chunk in _of_page(fact.filename, row, view))
    whole = len(view.page_text(fact.filename)) if view is not None else 0
    return replace(fact, place="without", position=None, sent=(came, whole if whole > came else 0))


def _of_page(doc_id: str, row: ExperimentResult, view: CorpusView | None) -> list[RetrievedChunk]:
    """Return the chunks that came of a page: by its name, or by its text where a service has other names."""
    page = view.bare_page(doc_id) if view is not None else ""
    known = view.documents if view is not None else {}
    return [
        chunk
        for chunk in row.retrieved_chunks
        if chunk.metadata.filename == doc_id or (chunk.metadata.filename not in known and is_part_of(chunk.text, page))
    ]


def _lacks_the_answer(case: Case, doc_id: str, row: ExperimentResult, view: CorpusView | None) -> bool:
    """Return whether a page has what the ground truth says, and no given chunk of any page has it."""
    page = view.page_text(doc_id) if view is not None else ""
    given = " ".join(chunk.text for chunk in row.retrieved_chunks)
    return carries(page, case.ground_truth) and not carries(given, case.ground_truth)


def _page_text(doc_id: str, row: ExperimentResult, view: CorpusView | None) -> str:
    """Return the text of a page; the given chunks where the page is not known."""
    known = view.page_text(doc_id) if view is not None else ""
    return known or "\n".join(chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename == doc_id)


def _holds(chunk: RetrievedChunk, doc_id: str, quote: str) -> bool:
    return says([chunk.text], quote) if quote else chunk.metadata.filename == doc_id


def _rank(chunk_ids: Set[str], row: ExperimentResult) -> int | None:
    return next((n for n, candidate in enumerate(row.candidates, 1) if candidate.chunk_id in chunk_ids), None)


def _superseded(case: Case, row: ExperimentResult, view: CorpusView | None) -> tuple[str, ...]:
    """Return the outdated pages on the subject in the context, without those that the question is about."""
    given = dict.fromkeys(chunk.metadata.filename for chunk in row.retrieved_chunks)
    outdated = outdated_pages(row, view)
    about = _gold_pages(case)
    return tuple(
        doc_id
        for doc_id in given
        if doc_id in outdated and doc_id not in about and (outdated[doc_id] in about or _same_matter(case, row, doc_id))
    )


def outdated_pages(row: ExperimentResult, view: CorpusView | None) -> Mapping[str, str]:
    """Return the outdated pages, each with the page that replaced it; those of the context where no other are known."""
    return view.superseded if view is not None and view.superseded else _said_in(row)


def _gold_pages(case: Case) -> set[str]:
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
    case: Case, row: ExperimentResult, superseded: Sequence[str], view: CorpusView | None
) -> Iterator[tuple[str, str]]:
    """Yield the figures that the answer has only from an outdated page on the subject: figure and page."""
    quotes = [one.quote for one in case.evidence]
    current = [chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename not in superseded]
    for doc_id in superseded:
        heir = view.superseded.get(doc_id, "") if view is not None else ""
        texts = [case.query.text, case.ground_truth, *quotes, *current, *([view.page_text(heir)] if view else [])]
        old = [chunk.text for chunk in row.retrieved_chunks if chunk.metadata.filename == doc_id]
        only = written_numbers(" ".join(old)) - written_numbers(" ".join(texts))
        yield from ((figure, doc_id) for figure in sorted(written_numbers(row.llm_answer) & only))


# Finds gold that belongs to another question, e.g. where rows of a file have shifted. Pure.

_LEAST_TERMS = 3
"""Least number of words and figures that distinguish a ground truth from others."""
_MORE, _MOSTLY = 1, 0.6
"""How many more words of the question the other gold must have; and its least share of the answer's words."""


@dataclass(frozen=True, slots=True)
class _GoldOfCase:
    case: Case
    terms: frozenset[str]
    figures: frozenset[str]


class GoldIndex:
    """The gold of all cases, to find the one by which an answer is right.

    Args:
        cases: cases of the suite; each answerable one is a candidate.
    """

    def __init__(self, cases: Iterable[Case]) -> None:
        self._known = [_known(case) for case in cases if case.answerable and _is_told(case.ground_truth)]

    def other(self, case: Case, answer: str, right: Rightness) -> str:
        """Return why the gold of ``case`` belongs to another question; empty where nothing says so.

        The answer is wrong by its own gold, has the ground truth of another case and hardly more, and the question
        shares more words with that gold than with its own. The last condition is needed because a pipeline may mistake
        the question for another: then the answer has another ground truth, too.
        """
        if right.right or right.value is None or not case.answerable:
            return ""
        asked, said, figures = plain_terms(case.query.text), plain_terms(answer), written_numbers(answer)
        mine = len(asked & _gold_terms(case))
        for other in self._known:
            is_near = len(asked & other.terms) >= mine + _MORE and len(said & other.terms) >= _MOSTLY * len(said)
            is_like = is_near and (not other.figures or bool(figures & other.figures))
            if is_like and other.case.query != case.query and carries(answer, other.case.ground_truth):
                return f"the answer is the ground truth of {other.case.query.query_id}, which fits the question better"
        return ""

    def answered(self, case: Case, answer: str) -> str:
        """Return the question of which an answer has the ground truth, and hardly more; empty where it is none's."""
        said, figures = plain_terms(answer), written_numbers(answer)
        for other in self._known:
            is_like = len(said & other.terms) >= _MOSTLY * len(said) and (not other.figures or figures & other.figures)
            if not said or not is_like or other.case.query == case.query:
                continue
            is_other = not carries(other.case.ground_truth, case.ground_truth)
            if is_other and carries(answer, other.case.ground_truth):
                return other.case.query.query_id
        return ""


def _is_told(text: str) -> bool:
    return len(plain_terms(text) | written_numbers(text)) >= _LEAST_TERMS


def _known(case: Case) -> _GoldOfCase:
    return _GoldOfCase(case, _gold_terms(case), written_numbers(case.ground_truth))


def _gold_terms(case: Case) -> frozenset[str]:
    quotes: Sequence[str] = [one.quote for one in case.evidence]
    return plain_terms(" ".join([case.ground_truth, *quotes]))
