"""Names the cause of a trial that fails by its expectations alone. Pure: the rules.

What explains more comes first: evidence that was lost explains an answer without citations, and not the reverse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from rag_harness.derived.attribution.broken import CITING, FACTS, PROMPT, WORDS, BrokenFact
from rag_harness.derived.attribution.cause_names import (
    EXPECTATION_BROKEN,
    GOLD_DOUBTFUL,
    LOGIC_FAILURE,
    OUTDATED_INFO,
    RETRIEVAL_MISS,
    UNDETERMINED,
)
from rag_harness.derived.attribution.gold import GoldFacts, QuoteFact
from rag_harness.derived.attribution.unfinished import CutOff

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
    evidence = "; ".join(filter(None, [f"not kept: {_shown(first)}{more}", cause.evidence]))
    return BrokenCause(cause.cause, cause.detail, evidence, cause.lost)


def _shown(fact: BrokenFact) -> str:
    text = str(fact.expectation)
    text = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return f"{text}: {fact.said}" if fact.said else text


def _one(fact: BrokenFact, answer: AnswerState) -> _Found:
    rules = _FORBIDDEN if fact.expectation.negated else _DEMANDED
    return next(found for rule in rules if (found := rule(fact, answer)) is not None)


def _stale(fact: BrokenFact, _: AnswerState) -> _Found | None:
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


_DEMANDED = (_stale, _of_prompt, _decline, _refusal, _miss, _cut_short, _citing, _words, _itself)
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
