"""All numbers on which decisions of the pipeline depend, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """The limits of the decisions.

    Attributes:
        go_on: retrieval quality above which the model is asked.
        fallback: retrieval quality below which the model is not asked. Between the two, there is another search first.
        relevance: relevance below which the best source counts as hardly relevant.
        coverage: coverage below which the sources count as lacking words of the question.
        grounded: groundedness below which the whole answer counts as ungrounded.
        claim: probability below which a single claim counts as ungrounded.
        agreement: agreement below which two answers to one question count as different.
        passed: confidence from which an answer passes without a warning.
        warned: confidence below which there is no answer.
    """

    go_on: float = 0.55
    fallback: float = 0.35
    relevance: float = 0.35
    coverage: float = 0.5
    grounded: float = 0.7
    claim: float = 0.5
    agreement: float = 0.5
    passed: float = 0.6
    warned: float = 0.2


NORMAL = Thresholds()
STRICT = Thresholds(
    go_on=0.65,
    fallback=0.45,
    relevance=0.5,
    coverage=0.6,
    grounded=0.8,
    claim=0.6,
    agreement=0.7,
    passed=0.7,
    warned=0.4,
)
MODES: Mapping[str, Thresholds] = {"normal": NORMAL, "strict": STRICT}
