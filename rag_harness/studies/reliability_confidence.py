"""Confidence in an answer: by a calibration on gold, or by a fixed formula."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rag_harness.core.settings.configurations import USUAL, FormulaWeights
from rag_harness.core.types import Decision
from rag_harness.evaluation.judges.calibration.confidence import SavedConfidence
from rag_harness.studies.reliability_retrieval import Signals
from rag_harness.studies.reliability_verification import Checked

CALIBRATE_AGAIN = "rag-harness reliability calibrate OUTPUT"


@dataclass(frozen=True, slots=True)
class StatedConfidence:
    """A confidence in [0, 1], and the decisions that explain it."""

    value: float
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Confidence:
    """Computes the confidence.

    Args:
        saved: the saved calibration, or None.
        made_of: returns the parts that the signals depend on; the row and the comparison with the calibration need
            them.
        weights: the weights of the formula.
    """

    saved: SavedConfidence | None
    made_of: Callable[[], Mapping[str, Any]]
    weights: FormulaWeights = USUAL.formula

    def stated(self, quality: float, found: Signals, checked: Checked, declined: bool) -> StatedConfidence:
        """Return how likely an answer is right. If it declines: how likely there was nothing to answer."""
        why = self.refusal(declined)
        model = None if self.saved is None else self.saved.model(declined)
        if self.saved is None or model is None or why:
            value = formula(quality, checked, declined, self.weights)
            return StatedConfidence(value, (Decision("confidence", "uncalibrated", value, reason=why),))
        signals = {**found.items(), **checked.items()}
        value = model.probability(signals)
        return StatedConfidence(
            value, (Decision("confidence", "calibrated", value), _promise(self.saved, value, declined))
        )

    def refusal(self, declined: bool) -> str:
        """Return why no calibration is used for an answer, or for declining; empty if one is used."""
        if self.saved is None:
            return f"nobody has calibrated it: {CALIBRATE_AGAIN}"
        ours, theirs = self.made_of(), {**self.saved.made_of, "experiment": self.saved.experiment}
        other = [name for name in sorted({*ours, *theirs}) if ours.get(name) != theirs.get(name)]
        if other:
            return f"it was calibrated with another {', '.join(other)}: {CALIBRATE_AGAIN}"
        what = "declined questions" if declined else "answers"
        return f"too few {what} to calibrate it on: {CALIBRATE_AGAIN}" if self.saved.model(declined) is None else ""


def formula(quality: float, checked: Checked, declined: bool, weights: FormulaWeights = USUAL.formula) -> float:
    """Return α · RQ + β · groundedness - γ · contradiction, in [0, 1]; if it declines, 1 - RQ.

    Signals that were not measured have no weight.
    """
    if declined:
        return 1 - quality
    if checked.groundedness is None:
        positive = quality
    else:
        positive = weights.alpha * quality + weights.beta * checked.groundedness
    return min(1.0, max(0.0, positive - weights.gamma * (checked.contradiction or 0.0)))


def _promise(saved: SavedConfidence, value: float, declined: bool) -> Decision:
    """Return the decision: whether the answer is among answers of which at most a known share is wrong."""
    threshold = saved.promise.threshold
    if threshold is None:
        return Decision("promise", "none", reason=saved.promise.reason)
    if declined:
        return Decision("promise", "none", reason="nothing was answered")
    said = f"at most {saved.promise.risk:.0%} of such answers are wrong, at 95 %"
    return Decision("promise", "kept" if value >= threshold else "not kept", value, threshold, said)
