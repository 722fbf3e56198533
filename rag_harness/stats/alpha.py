"""Agreement of any number of raters, some of whom skip items; and the agreement of a rater with itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

import numpy as np

from rag_harness.stats.inputs import Floats, UndefinedError, floats

Level: TypeAlias = Literal["nominal", "interval"]
"""Whether values are categories, or numbers with distances."""
Items: TypeAlias = Sequence[Sequence[float]]
"""The values of each item, any number of them, in any order."""


def krippendorff_alpha(items: Items, level: Level = "nominal") -> float:
    """Return 1 - disagreement within items / expected disagreement (Krippendorff 2011); 1 is perfect, 0 is chance.

    Items with fewer than two values carry no information on agreement and are left out.

    Raises:
        UndefinedError: no item has two values, or all values are equal.
    """
    rated = [floats(item, "krippendorff_alpha") for item in items if len(item) > 1]
    if not rated:
        raise UndefinedError("no item has two values")
    everything = np.concatenate(rated)
    n = len(everything)
    by_chance = _disagreement(everything, level) / (n - 1)
    if not by_chance:
        raise UndefinedError(f"everybody says {everything[0]:g} of everything")
    observed = sum(_disagreement(item, level) / (len(item) - 1) for item in rated)
    return float(1 - observed / by_chance)


def flip_rate(items: Items, threshold: float = 0.5) -> float:
    """Return the probability that two values of an item are on different sides of ``threshold``: the mean over items.

    Raises:
        UndefinedError: no item has two values.
    """
    rated = [(floats(item, "flip_rate") >= threshold).astype(float) for item in items if len(item) > 1]
    if not rated:
        raise UndefinedError("no item has two values")
    pairs = [_disagreement(item, "nominal") / (len(item) * (len(item) - 1)) for item in rated]
    return float(np.mean(pairs))


def _disagreement(values: Floats, level: Level) -> float:
    """Return the sum over ordered pairs of 1 where they differ, or of their squared distance."""
    n = len(values)
    if level == "nominal":
        _, counts = np.unique(values, return_counts=True)
        return float(n * n - (counts**2).sum())
    centred = values - values[0]
    return float(2 * (n * (centred**2).sum() - centred.sum() ** 2))
