"""Expectations that an answer breaks: where their facts were lost, and the cause of the failure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from fnmatch import fnmatchcase
from functools import lru_cache

from rag_harness.core.text.terms import written_numbers
from rag_harness.core.types import Case, Expectation
from rag_harness.diagnosis.corpus_view import CorpusView
from rag_harness.diagnosis.failures import (
    EXPECTATION_BROKEN,
    GOLD_DOUBTFUL,
    LOGIC_FAILURE,
    OUTDATED_INFO,
    RETRIEVAL_MISS,
    UNDETERMINED,
)
from rag_harness.diagnosis.gold import GoldFacts, QuoteFact, QuotePlace, among, outdated_pages
from rag_harness.diagnosis.truncation import CutOff
from rag_harness.evaluation.measures.correctness import carries
from rag_harness.evaluation.measures.expectations import found_in
from rag_harness.records.document_ranking import document_in, document_of
from rag_harness.records.expectations import AnswerSeen, ExpectationResult, looked_at
from rag_harness.records.row import ExperimentResult, RetrievedChunk

# Finds for each expectation that an answer does not keep where what it demands was lost. Pure.

CITING = frozenset(("cites", "cites_any", "cites_all", "cites_only"))
PROMPT = frozenset(("retrieves", "context_contains"))
FACTS = frozenset(("number", "date"))
WORDS = FACTS | {"contains", "contains_any", "contains_all", "regex", "rouge_l", "equals", "one_of"}
_WHOLE = frozenset(("equals", "one_of"))
_Holds = Callable[[str, str], bool]
"""Whether a document of this name, with this text, has what is demanded."""


@dataclass(frozen=True, slots=True)
class BrokenFact:
    """An expectation that an answer does not meet, and where the demanded text or page is.

    Attributes:
        expectation: what is demanded.
        said: what the answer has instead.
        lost: where the demanded text was lost; None where the prompt had it, or where the expectation is about no
            source.
        there: the source of the prompt that has it; of a forbidden text, the source that the answer has it from.
        nowhere: whether no page has it.
        stale: the outdated page that the answer follows; empty where it follows none.
        in_part: whether the answer has more than the text that it should consist of.
    """

    expectation: Expectation
    said: str = ""
    lost: QuoteFact | None = None
    there: str = ""
    nowhere: bool = False
    stale: str = ""
    in_part: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """A text or a page that an expectation demands. ``page`` is empty for a text."""

    holds: _Holds
    text: str = ""
    page: str = ""


def broken_in(case: Case, row: ExperimentResult) -> list[ExpectationResult]:
    """Return the expectations of a case that the answer in a row does not keep."""
    return [each for each in found_in(case, row) if each.kept is False] if case.expect else []


def broken_facts(case: Case, row: ExperimentResult, view: CorpusView | None) -> tuple[BrokenFact, ...]:
    """Return what is known of each expectation that the answer does not keep.

    Without a ``view``, the content of index and pages is not known.
    """
    found = broken_in(case, row)
    return tuple(_fact(each, case, row, view) for each in found)


def wants_refusal(case: Case) -> bool:
    """Whether the right answer to a case is that the documents do not answer it."""
    return not case.answerable or any(
        each.kind == ("answers" if each.negated else "declines") for each in case.expect if each.wanted is True
    )


def _fact(kept: ExpectationResult, case: Case, row: ExperimentResult, view: CorpusView | None) -> BrokenFact:
    demand, fact = kept.expectation, BrokenFact(kept.expectation, kept.said)
    if demand.kind in _WHOLE and not demand.negated and _any_text(_texts(demand), demand)("", row.llm_answer):
        return replace(fact, in_part=True)
    if demand.negated:
        return _forbidden(fact, case, row, view)
    if demand.kind in WORDS and (stale := _stale(demand, case, row, view)):
        return replace(fact, stale=stale)
    found = [_placed(part, fact, case, row, view) for part in _parts(demand, case, row)]
    # What was not in the prompt explains the answer before what was.
    return next((each for each in found if each.lost or each.nowhere), next(iter(found), fact))


def _parts(demand: Expectation, case: Case, row: ExperimentResult) -> Iterator[_Part]:
    """Yield the texts and pages that the answer lacks, each of which a source could have."""
    if demand.kind == "contains_all":
        for text in demand.wanted:
            holds = _any_text([text], demand)
            if not holds("", row.llm_answer):
                yield _Part(holds, text)
    elif demand.kind == "rouge_l":
        yield _Part(lambda _, text: carries(text, demand.wanted), demand.wanted)
    elif demand.kind in _WHOLE:
        yield _Part(_any_text(_texts(demand), demand), " or ".join(_texts(demand)))
    elif demand.kind in WORDS:
        yield _Part(lambda _, text: _does(demand, text), _shown(demand))
    elif demand.kind == "context_contains":
        yield _Part(_any_text([demand.wanted], demand), demand.wanted)
    elif demand.kind == "cites_all":
        cited = {document_in(case, row.retrieved_chunks[n - 1]) for n in row.citations if _is_there(n, row)}
        yield from (_page([each]) for each in demand.wanted if not any(fnmatchcase(one, each) for one in cited))
    elif demand.kind in CITING or demand.kind == "retrieves":
        yield _page(_texts(demand))


def _is_there(number: int, row: ExperimentResult) -> bool:
    return 1 <= number <= len(row.retrieved_chunks)


def _texts(demand: Expectation) -> list[str]:
    return [demand.wanted] if isinstance(demand.wanted, str) else list(demand.wanted)


def _shown(demand: Expectation) -> str:
    """Return a demand as words that a page could have."""
    if isinstance(demand.wanted, list):
        return " or ".join(map(str, demand.wanted))
    return f"{demand.wanted} {demand.options.get('unit', '')}".strip()


def _page(names: Sequence[str]) -> _Part:
    return _Part(lambda document, _: any(fnmatchcase(document, each) for each in names), page=", ".join(names))


def _any_text(texts: Sequence[str], demand: Expectation) -> _Holds:
    options = {"case": True} if demand.options.get("case") else {}
    wanted = [(Expectation("contains", each, options), max(each.split(), key=len).casefold()) for each in texts]
    # The index may be large: the regular expression is asked only of texts that have the longest word.
    return lambda _, text: any(word in _folded(text) and _does(each, text) for each, word in wanted)


@lru_cache(maxsize=8192)
def _folded(text: str) -> str:
    """Return a text without upper case. Each failed trial looks through the same chunks."""
    return text.casefold()


def _does(demand: Expectation, text: str) -> bool:
    """Return whether a text does what an expectation is about, as an answer would."""
    (found,) = looked_at([replace(demand, negated=False) if demand.negated else demand], _seen(text))
    return bool(found.kept)


@lru_cache(maxsize=8192)
def _seen(text: str) -> AnswerSeen:
    """Return a text as an answer is seen, with what is worked out of its words: they are the same for each demand."""
    return AnswerSeen(text, explained=False)


def _placed(part: _Part, fact: BrokenFact, case: Case, row: ExperimentResult, view: CorpusView | None) -> BrokenFact:
    """Return where a part is: in the prompt, or where it was lost."""
    if there := next(_holding(part.holds, case, row), None):
        return replace(fact, there=there)
    missing = QuoteFact(part.page, part.text, True, "missing")
    if view is not None and view.knows_index:
        holders = [chunk for chunk in view.chunks.values() if part.holds(chunk.doc_id, chunk.text)]
        if holders:
            first = replace(missing, filename=holders[0].doc_id)
            return replace(fact, lost=among(first, row, holders))
    page = _page_with(part, view)
    if page and view is not None and view.knows_index:
        place: QuotePlace = "cut" if part.text and view.of_page(page) else "not in the index"
        return replace(fact, lost=replace(missing, filename=page, place=place))
    if not page and part.text and view is not None and (view.documents or view.knows_index):
        return replace(fact, nowhere=True)
    if part.page and view is not None and view.knows_index:
        return replace(fact, lost=replace(missing, place="not in the index"))
    return replace(fact, lost=_by_candidates(replace(missing, filename=page or part.page), part, row))


def _page_with(part: _Part, view: CorpusView | None) -> str:
    known = view.documents if view is not None else {}
    return next((doc_id for doc_id, page in known.items() if part.holds(doc_id, page.text)), "")


def _by_candidates(missing: QuoteFact, part: _Part, row: ExperimentResult) -> QuoteFact:
    """Return how near a page came to the prompt, by the documents of the candidates, where the index is not known."""
    if part.text:
        return missing
    ranks = [n for n, each in enumerate(row.candidates, 1) if part.holds(document_of(each.chunk_id), "")]
    if not ranks:
        return missing
    place: QuotePlace = "lost in reranking" if ranks[0] <= len(row.retrieved_chunks) else "ranked below k"
    return replace(missing, place=place, rank=ranks[0])


def _holding(holds: _Holds, case: Case, row: ExperimentResult) -> Iterator[str]:
    """Yield the sources of the prompt that have something: "source 2, returns.md"."""
    for number, document, chunk in _sources(case, row):
        if holds(document, chunk.text):
            yield f"source {number}{', ' if document else ''}{document}"


def _sources(case: Case, row: ExperimentResult) -> Iterator[tuple[int, str, RetrievedChunk]]:
    for number, chunk in enumerate(row.retrieved_chunks, 1):
        yield number, document_in(case, chunk), chunk


def _forbidden(fact: BrokenFact, case: Case, row: ExperimentResult, view: CorpusView | None) -> BrokenFact:
    """Return which source has what the answer must not have, and whether only outdated ones do."""
    demand = fact.expectation
    if demand.kind in CITING or demand.kind == "retrieves":
        holds = _page(_texts(demand)).holds
    elif demand.kind in WORDS or demand.kind == "context_contains":
        holds = _holds_words(demand)
    else:
        return fact
    outdated = outdated_pages(row, view)
    having = [document for _, document, chunk in _sources(case, row) if holds(document, chunk.text)]
    stale = having[0] if having and all(document in outdated for document in having) else ""
    return replace(fact, there=next(_holding(holds, case, row), ""), stale=stale)


def _holds_words(demand: Expectation) -> _Holds:
    if demand.kind in _WHOLE:
        return _any_text(_texts(demand), demand)
    plain = replace(demand, kind="contains") if demand.kind == "context_contains" else demand
    return lambda _, text: _does(plain, text)


def _stale(demand: Expectation, case: Case, row: ExperimentResult, view: CorpusView | None) -> str:
    """Return the outdated page whose figure the answer has in place of what is demanded; empty without one."""
    outdated = outdated_pages(row, view)
    old = [(document, chunk.text) for _, document, chunk in _sources(case, row) if document in outdated]
    if not old:
        return ""
    current = [chunk.text for _, document, chunk in _sources(case, row) if document not in outdated]
    known = written_numbers(" ".join([case.query.text, case.ground_truth, _shown(demand), *current]))
    said = written_numbers(row.llm_answer) - known
    return next((document for document, text in old if said & written_numbers(text)), "")


# Names the cause of a trial that fails by its expectations alone. Pure: the rules.
#
# What explains more comes first: evidence that was lost explains an answer without citations, and not the reverse.

_OLD = "says what only an outdated page says"
_LONGEST = 200
"""The most characters of an expectation that evidence shows."""
_FORM = """
    starts_with ends_with max_words min_words max_chars min_chars max_sentences links language is_json json cited
    valid_citations finishes equals one_of
"""
_DETAIL = dict.fromkeys(_FORM.split(), "form of the answer") | {
    "max_ms": "took too long",
    "max_usd": "cost too much",
    "max_tokens": "cost too much",
    "decides": "decided otherwise",
    "min_confidence": "decided otherwise",
    "snapshot": "says something else than before",
}
_STOPS = WORDS | CITING | {"min_words", "min_chars", "ends_with", "is_json", "json", "cited", "finishes"}
"""Kinds that an answer does not keep because it stops before its end."""


class _First(IntEnum):
    """What explains more comes first."""

    OUTDATED = 0
    LOST = 1
    REFUSED = 2
    CUT_OFF = 3
    SAID = 4
    CITED = 5
    NOWHERE = 6
    FORM = 7
    EFFORT = 8


@dataclass(frozen=True, slots=True)
class BrokenCause:
    """The cause that broken expectations have. ``lost`` is what the prompt lacked; its place is the detail."""

    cause: str
    detail: str
    evidence: str
    lost: QuoteFact | None = None


_Found = tuple[_First, BrokenCause]


@dataclass(frozen=True, slots=True)
class AnswerState:
    """What is known of the answer beside its expectations.

    Attributes:
        refused: whether it says that it does not know, in the prompt's words or its own.
        wants_refusal: whether that is the right answer.
    """

    refused: bool
    wants_refusal: bool
    cut_off: CutOff
    gold: GoldFacts


def cause_of_broken(broken: Sequence[BrokenFact], answer: AnswerState) -> BrokenCause:
    """Return the cause that explains most of what is broken; of equals, that of what must be kept."""
    found = [(*_one(each, answer), each) for each in broken]
    _, cause, first = min(found, key=lambda each: (each[0], not each[2].expectation.must))
    more = f" ({len(broken) - 1} more not kept)" if len(broken) > 1 else ""
    evidence = "; ".join(filter(None, [f"not kept: {_broken_fact_text(first)}{more}", cause.evidence]))
    return BrokenCause(cause.cause, cause.detail, evidence, cause.lost)


def _broken_fact_text(fact: BrokenFact) -> str:
    text = str(fact.expectation)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"{text}: {fact.said}" if fact.said else text


def _one(fact: BrokenFact, answer: AnswerState) -> _Found:
    rules = _FORBIDDEN if fact.expectation.negated else _DEMANDED
    return next(found for rule in rules if (found := rule(fact, answer)) is not None)


def _outdated_cause(fact: BrokenFact, _: AnswerState) -> _Found | None:
    if not fact.stale:
        return None
    said = f"a figure of the answer is only in {fact.stale}"
    return _First.OUTDATED, BrokenCause(OUTDATED_INFO, _OLD, said)


def _of_prompt(fact: BrokenFact, _: AnswerState) -> _Found | None:
    if fact.expectation.kind not in PROMPT:
        return None
    return _no_page() if fact.nowhere else _lost(fact.lost)


def _decline(fact: BrokenFact, answer: AnswerState) -> _Found | None:
    if fact.expectation.kind != "declines":
        return None
    return _should_decline(answer)


def _refusal(fact: BrokenFact, answer: AnswerState) -> _Found | None:
    # A right refusal needs no evidence: what is demanded of it is its wording.
    is_told_by = fact.expectation.kind in WORDS | CITING | {"answers", "cited"}
    return _refused(fact, answer) if answer.refused and not answer.wants_refusal and is_told_by else None


def _miss(fact: BrokenFact, answer: AnswerState) -> _Found | None:
    return _lost(fact.lost) if fact.lost is not None and not answer.wants_refusal else None


def _cut_short(fact: BrokenFact, answer: AnswerState) -> _Found | None:
    if not answer.cut_off.why or fact.expectation.kind not in _STOPS or fact.in_part:
        return None
    return _First.CUT_OFF, BrokenCause(LOGIC_FAILURE, "cut short", answer.cut_off.why)


def _citing(fact: BrokenFact, _: AnswerState) -> _Found | None:
    kind = fact.expectation.kind
    if kind == "valid_citations":
        return _First.CITED, BrokenCause(LOGIC_FAILURE, "cites a source that is not there", "")
    if kind != "cited" and kind not in CITING:
        return None
    detail = "cites nothing" if fact.said.startswith("it cites nothing") else "cites another source"
    return _First.CITED, BrokenCause(LOGIC_FAILURE, detail, f"{fact.there} was in the prompt" if fact.there else "")


def _words(fact: BrokenFact, answer: AnswerState) -> _Found | None:
    kind = fact.expectation.kind
    if kind not in WORDS or fact.in_part:
        return None
    if fact.there and not answer.wants_refusal:
        return _First.SAID, BrokenCause(LOGIC_FAILURE, "found and not said", f"{fact.there}, has it")
    if fact.nowhere and kind in FACTS and not answer.wants_refusal:
        return _no_page()
    return _First.FORM, BrokenCause(EXPECTATION_BROKEN, "wording", "no page has it" if fact.nowhere else "")


def _itself(fact: BrokenFact, _: AnswerState) -> _Found:
    detail = _DETAIL.get(fact.expectation.kind, "not kept")
    is_form = detail == "form of the answer"
    return _First.FORM if is_form else _First.EFFORT, BrokenCause(EXPECTATION_BROKEN, detail, "")


def _turned_refusal(fact: BrokenFact, answer: AnswerState) -> _Found | None:
    kind = fact.expectation.kind
    if kind == "answers":
        return _should_decline(answer)
    return _refused(fact, answer) if kind == "declines" else None


def _forbidden_and_old(fact: BrokenFact, _: AnswerState) -> _Found | None:
    if not fact.stale:
        return None
    kind = fact.expectation.kind
    detail = "an outdated page is in the prompt" if kind in PROMPT else _OLD
    return _First.OUTDATED, BrokenCause(
        OUTDATED_INFO, "cites an outdated page" if kind in CITING else detail, fact.there
    )


def _forbidden_source(fact: BrokenFact, _: AnswerState) -> _Found | None:
    kind = fact.expectation.kind
    if kind in PROMPT:
        return _First.FORM, BrokenCause(EXPECTATION_BROKEN, "a source that must not be in the prompt", fact.there)
    return (_First.CITED, BrokenCause(LOGIC_FAILURE, "cites another source", fact.there)) if kind in CITING else None


def _forbidden_words(fact: BrokenFact, _: AnswerState) -> _Found | None:
    if fact.expectation.kind not in WORDS or fact.in_part:
        return None
    has = f"{fact.there}, has it" if fact.there else "no source of the prompt has it"
    return _First.SAID, BrokenCause(LOGIC_FAILURE, "says what it must not", has)


_DEMANDED = (_outdated_cause, _of_prompt, _decline, _refusal, _miss, _cut_short, _citing, _words, _itself)
_FORBIDDEN = (_turned_refusal, _forbidden_and_old, _forbidden_source, _forbidden_words, _itself)


def _lost(lost: QuoteFact | None) -> _Found:
    return _First.LOST, BrokenCause(RETRIEVAL_MISS, "", "", lost)


def _no_page() -> _Found:
    return _First.NOWHERE, BrokenCause(GOLD_DOUBTFUL, "no page has what is expected", "no page has it")


def _should_decline(answer: AnswerState) -> _Found:
    if answer.refused:
        said = "it refuses, and the pipeline does not say so"
        return _First.FORM, BrokenCause(EXPECTATION_BROKEN, "declines in words of its own", said)
    said = "it was to say that it does not know"
    return _First.SAID, BrokenCause(LOGIC_FAILURE, "answered what is not in the documents", said)


def _refused(fact: BrokenFact, answer: AnswerState) -> _Found:
    """Return why an answer says that it does not know: because of the prompt, or although it was there."""
    if lost := fact.lost or next(iter(answer.gold.lost), None):
        return _lost(lost)
    if fact.there or answer.gold.needed:
        had = f"{fact.there}, has it" if fact.there else "all that is needed was in the context"
        return _First.REFUSED, BrokenCause(LOGIC_FAILURE, "wrong refusal", f"{had}, and it says it does not know")
    said = "it says that it does not know, and nothing says what it would have needed"
    return _First.EFFORT, BrokenCause(UNDETERMINED, "no gold", said)
