"""Decides whether to pass, warn or abstain; the reasons are codes for programs, each with a text for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from rag_harness.settings.reliability_numbers import WEAK_SIGNALS, Thresholds
from rag_harness.studies.reliability.quality import Signals
from rag_harness.studies.reliability.verification import Checked
from rag_harness.types import Answer

Outcome = Literal["pass", "warn", "abstain"]
_SHOWN = 80


def outcome(confidence: float, answer: Answer, codes: list[str], thresholds: Thresholds) -> Outcome:
    """Return the outcome for an answer: with a reason code it never passes, however confident it is.

    An answer that says it does not know counts as abstaining.
    """
    if answer.abstained or confidence < thresholds.warned:
        return "abstain"
    return "warn" if codes or confidence < thresholds.passed else "pass"


def codes_of(answer: Answer, signals: Signals, checked: Checked, thresholds: Thresholds) -> list[str]:
    """Return the reason codes of an answer, most serious first."""
    return [*_of_answer(answer, checked, thresholds), *of_retrieval(signals, thresholds)]


def of_retrieval(signals: Signals, thresholds: Thresholds) -> list[str]:
    """Return the reason codes about the retrieved sources."""
    low = [(signals.relevance, thresholds.relevance), (signals.coverage, thresholds.coverage)]
    named = zip(WEAK_SIGNALS, low, strict=True)
    return [name for name, (value, limit) in named if value is not None and value < limit]


def _of_answer(answer: Answer, checked: Checked, thresholds: Thresholds) -> Iterator[str]:
    if answer.abstained:
        yield "NOT_IN_SOURCES"
        return
    for claim, value in checked.unsupported:
        if value < thresholds.claim:
            yield f"UNGROUNDED_CLAIM: {_short(claim)}"
    if checked.groundedness is not None and checked.groundedness < thresholds.grounded:
        yield "UNGROUNDED_ANSWER"
    for one, other in checked.conflicting:
        yield f"CONFLICTING_SOURCES: {', '.join(dict.fromkeys((one, other)))}"
    for name in checked.against:
        yield f"CONTRADICTS_SOURCE: {name}"
    for name in checked.outdated:
        yield f"OUTDATED_SOURCE: {name}"
    if checked.self_consistency is not None and checked.self_consistency < thresholds.agreement:
        yield "INCONSISTENT_ANSWERS"
    if not answer.citations:
        yield "NO_CITATION"
    if answer.invalid_citations:
        yield f"UNKNOWN_SOURCE: {', '.join(map(str, answer.invalid_citations))}"


def _short(claim: str) -> str:
    plain = " ".join(claim.split()).replace(";", ",")
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]} …"
