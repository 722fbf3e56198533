"""Repeatability of a judge: its agreement with itself on the same answers."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from rag_harness.stats.alpha import flip_rate, krippendorff_alpha
from rag_harness.stats.inputs import UndefinedError


@dataclass(frozen=True, slots=True)
class Repeatability:
    """How far a judge agrees with itself.

    ``flips`` is the probability that two judgements of an answer are on different sides of the threshold. ``alpha`` is
    Krippendorff's interval alpha over the scores. Both are None where ``reason`` says why. ``n`` answers have at least
    two scores; ``missing`` judgements gave no score.
    """

    flips: float | None
    alpha: float | None
    n: int
    missing: int
    reason: str = ""

    def line(self) -> str:
        """Return the result in one line."""
        lost = f", {self.missing} judgements without a score" if self.missing else ""
        if self.flips is None:
            return f"judged again: nothing to compare, {self.reason}{lost}"
        alpha = f"α {self.alpha:.2f}" if self.alpha is not None else f"α not defined: {self.reason}"
        return f"judged again: {self.flips:.1%} of verdicts flip, {alpha}  n={self.n}{lost}"


def repeatability(scores: Mapping[Hashable, Sequence[float | None]], threshold: float = 0.5) -> Repeatability:
    """Return the agreement of each item's judgements. None is a judgement without a score, and is left out."""
    items = [[value for value in values if value is not None] for values in scores.values()]
    missing = sum(value is None for values in scores.values() for value in values)
    n = sum(len(item) > 1 for item in items)
    try:
        flips = flip_rate(items, threshold)
    except UndefinedError as why:
        return Repeatability(None, None, n, missing, str(why))
    try:
        return Repeatability(flips, krippendorff_alpha(items, "interval"), n, missing)
    except UndefinedError as why:
        return Repeatability(flips, None, n, missing, str(why))
