"""Confidence by formula and by calibration, and what becomes of an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rag_harness.core.settings.reliability import NORMAL, STRICT, Thresholds
from rag_harness.core.types import Answer
from rag_harness.evaluation.judges.calibration.confidence import HeldOut, Logistic, SavedConfidence, SavedPromise
from rag_harness.studies.reliability import codes_of, decide_outcome
from rag_harness.studies.reliability_retrieval import Signals
from rag_harness.studies.reliability_verification import Checked, Confidence, formula

GOOD = Signals(0.9, 0.8, 1.0, 0.5)
CITED = Answer("45 days [Source 1].", citations=(1,))
MADE_OF = {"experiment": "r1", "embedder": "mini 1", "index": "abc"}


def saved(threshold: float | None = None, **changes: Any) -> SavedConfidence:
    answered = Logistic(
        n=50,
        positive=25,
        intercept=0.0,
        means={"relevance": 0.5},
        spreads={"relevance": 0.1},
        coefficients={"relevance": 1},
    )
    declined = Logistic(n=20, positive=5, intercept=-1.0)
    promise = SavedPromise(risk=0.05, threshold=threshold, reason="" if threshold else "59 more")
    fields = {"experiment": "r1", "n": 70, "promise": promise, "tested": HeldOut(n=0), "made_of": MADE_OF}
    return SavedConfidence(answered=answered, declined=declined, **(fields | changes))


def test_the_formula() -> None:
    checked = Checked(groundedness=0.8, contradiction=0.2)
    assert formula(0.6, checked, declined=False) == pytest.approx(0.5 * 0.6 + 0.5 * 0.8 - 0.5 * 0.2)
    assert formula(0.6, Checked(), declined=False) == 0.6
    assert formula(0.1, Checked(contradiction=1.0), declined=False) == 0.0
    assert formula(0.3, Checked(), declined=True) == pytest.approx(0.7)


def test_calibrated_where_it_is_of_the_same_parts() -> None:
    stated = Confidence(saved(), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False)
    assert stated.value == pytest.approx(1 / (1 + 2.718281828**-4))
    assert [one.name for one in stated.decisions] == ["confidence", "promise"]
    assert stated.decisions[0].outcome == "calibrated"
    assert (stated.decisions[1].outcome, stated.decisions[1].reason) == ("none", "59 more")


def test_declining_has_a_model_of_its_own() -> None:
    stated = Confidence(saved(), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=True)
    assert stated.value == pytest.approx(1 / (1 + 2.718281828))


def test_refused_with_another_embedder() -> None:
    stated = Confidence(saved(), lambda: MADE_OF | {"embedder": "other 1"}).stated(0.6, GOOD, Checked(), declined=False)
    (decision,) = stated.decisions
    assert (decision.outcome, stated.value) == ("uncalibrated", 0.6)
    assert decision.reason == "it was calibrated with another embedder: rag-harness reliability calibrate OUTPUT"


def test_a_file_that_was_copied_to_another_experiment_is_refused() -> None:
    stated = Confidence(saved(experiment="r6"), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False)
    (decision,) = stated.decisions
    assert decision.reason.startswith("it was calibrated with another experiment: ")


@pytest.mark.parametrize(("declined", "what"), [(True, "declined questions"), (False, "answers")])
def test_what_no_model_was_fitted_to_is_uncalibrated(declined: bool, what: str) -> None:
    half = saved().model_copy(update={"declined" if declined else "answered": None})
    (decision,) = Confidence(half, lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined).decisions
    assert decision.outcome == "uncalibrated"
    assert decision.reason == f"too few {what} to calibrate it on: rag-harness reliability calibrate OUTPUT"
    (decision, _) = Confidence(half, lambda: MADE_OF).stated(0.6, GOOD, Checked(), not declined).decisions
    assert decision.outcome == "calibrated"


def test_uncalibrated_where_nobody_has() -> None:
    (decision,) = Confidence(None, lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False).decisions
    assert decision.reason.startswith("nobody has calibrated it")


@pytest.mark.parametrize(("threshold", "wanted"), [(0.9, "kept"), (0.99, "not kept")])
def test_a_promise_is_kept_from_its_threshold(threshold: float, wanted: str) -> None:
    stated = Confidence(saved(threshold), lambda: MADE_OF).stated(0.6, GOOD, Checked(), declined=False)
    assert stated.decisions[1].outcome == wanted


def test_an_answer_without_fault_has_no_code() -> None:
    assert codes_of(CITED, GOOD, Checked(0.9, 0.0, 1.0), NORMAL) == []


def test_every_code() -> None:
    checked = Checked(
        0.3, 0.5, 0.2, (("It is  blue;\nreally.", 0.1),), (("a.md", "b.md"), ("c.md", "c.md")), ("d.md",), ("e.md",)
    )
    found = codes_of(Answer("x", invalid_citations=(9,)), Signals(0.1, 0.1, 0.1, 0.1), checked, NORMAL)
    assert found == [
        "UNGROUNDED_CLAIM: It is blue, really.",
        "UNGROUNDED_ANSWER",
        "CONFLICTING_SOURCES: a.md, b.md",
        "CONFLICTING_SOURCES: c.md",
        "CONTRADICTS_SOURCE: d.md",
        "OUTDATED_SOURCE: e.md",
        "INCONSISTENT_ANSWERS",
        "NO_CITATION",
        "UNKNOWN_SOURCE: 9",
        "LOW_RELEVANCE",
        "LOW_COVERAGE",
    ]


def test_who_does_not_know_says_so_and_nothing_else() -> None:
    assert codes_of(Answer("I don't know.", abstained=True), GOOD, Checked(), NORMAL) == ["NOT_IN_SOURCES"]


@pytest.mark.parametrize(
    ("confidence", "codes", "wanted"),
    [
        (0.6, [], "pass"),
        (0.59, [], "warn"),
        (0.2, [], "warn"),
        (0.19, [], "abstain"),
        (0.9, ["LOW_COVERAGE"], "warn"),
        (0.9, ["LOW_RELEVANCE"], "warn"),
        (0.1, ["LOW_COVERAGE"], "abstain"),
        (0.9, ["OUTDATED_SOURCE: a.md"], "warn"),
        (0.9, ["UNGROUNDED_CLAIM: x"], "warn"),
        (0.9, ["NO_CITATION"], "warn"),
        (0.9, ["UNKNOWN_SOURCE: 9"], "warn"),
    ],
)
def test_outcome(confidence: float, codes: list[str], wanted: str) -> None:
    assert decide_outcome(confidence, CITED, codes, NORMAL) == wanted


@pytest.mark.parametrize("limits", [NORMAL, STRICT], ids=["normal", "strict"])
@pytest.mark.parametrize("signal", ["relevance", "coverage"])
def test_a_signal_below_its_limit_never_passes_and_withholds_nothing(limits: Thresholds, signal: str) -> None:
    weak = replace(GOOD, **{signal: getattr(limits, signal) - 0.01})
    assert decide_outcome(0.99, CITED, codes_of(CITED, weak, Checked(0.9, 0.0, 1.0), limits), limits) == "warn"
    enough = replace(GOOD, **{signal: getattr(limits, signal)})
    assert decide_outcome(0.99, CITED, codes_of(CITED, enough, Checked(0.9, 0.0, 1.0), limits), limits) == "pass"


def test_strict_is_stricter() -> None:
    assert [decide_outcome(value, CITED, [], STRICT) for value in (0.3, 0.65, 0.75)] == ["abstain", "warn", "pass"]
    assert decide_outcome(0.9, Answer("I don't know.", abstained=True), [], NORMAL) == "abstain"
