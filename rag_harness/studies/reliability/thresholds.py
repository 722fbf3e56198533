"""Every number that a decision of the pipeline hangs on, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """What is set against what.

    Attributes:
        go_on: retrieval quality above which the model is asked.
        fallback: retrieval quality below which it is not; between the two, it is searched again first.
        relevance: below it the best source is called of low relevance.
        coverage: below it the sources are said to lack words of the question.
        grounded: below it the answer is called ungrounded as a whole.
        claim: below it one claim is.
        agreement: below it two answers to one question are said to differ.
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
