"""Bounds of a mean difference over the same cases, for the question which of two is better.

With few cases no assumption-free bound can show small differences: an unseen case may differ by the whole range
(Bahadur & Savage 1956). This bound is Student's paired t with a term for skewness. It assumes that there is no large
difference so rare that the cases could miss it (``rarest_seen``): a sample without any looks like one of cases that
have none. Where cases show that this is not credible, a guard takes the assumption-free bounds instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from rag_harness.stats.bounded import ValueRange
from rag_harness.stats.clusters import cluster_sums
from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked_confidence, floats
from rag_harness.stats.intervals import Interval
from rag_harness.stats.mean_bounds import mean_bounds, of_these
from rag_harness.stats.students import skewed_t_bounds

FEWEST_DIFFERING = 10
"""Least number of cases that differ."""
LARGEST_SHARE_OF_SQUARES = 0.2
"""Highest share of the sum of squares that one case may have."""
SEEN = 4
"""Average number of cases with a rare difference from which on few samples have none: (1 - 4 / n) ** n < 2 %."""
_SAME = 1e-12
_NONE = "nothing differs"


class DifferenceBounds(NamedTuple):
    """Bounds of a mean difference. ``guarded`` says why no paired test is used; it is empty where one is.

    ``units`` is the number of cases, or of clusters, that the paired test counts; 0 where it is not used.
    """

    interval: Interval
    guarded: str = ""
    units: int = 0


def difference_bounds(
    differences: Values,
    span: ValueRange | None = None,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    population: int | None = None,
) -> DifferenceBounds:
    """Return a lower and an upper bound of the mean. Each holds by itself with ``confidence``.

    Args:
        differences: one for each case, of the same measure in two experiments.
        span: lowest and highest possible difference, where that is known.
        confidence: confidence of each bound.
        clusters: cluster of each case; None where there are none.
        population: number of all cases, where the mean is about these only; None where it is about all cases like
            these.

    Raises:
        UndefinedError, ValueError: as ``mean_bounds``.
    """
    array = floats(differences, "difference_bounds")
    checked_confidence(confidence)
    guarded = why_guarded(array, clusters)
    if guarded or population == len(array):
        return DifferenceBounds(mean_bounds(array, span, confidence, clusters, population), guarded)
    try:
        low, high = skewed_t_bounds(array, confidence, clusters)
    except UndefinedError as why:
        return DifferenceBounds(mean_bounds(array, span, confidence, clusters, population), str(why))
    bounds = Interval(max(low, span[0]), min(high, span[1])) if span else Interval(low, high)
    units = len(array) if clusters is None else len(set(clusters))
    return DifferenceBounds(bounds if population is None else of_these(bounds, array, span, population), units=units)


def difference_interval(
    differences: Values,
    span: ValueRange | None = None,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
) -> Interval:
    """Return an interval of the mean that contains it with ``confidence``.

    Raises:
        UndefinedError, ValueError: as ``mean_bounds``.
    """
    return difference_bounds(differences, span, (1 + checked_confidence(confidence)) / 2, clusters).interval


def rarest_seen(units: int) -> int:
    """Return k: of so many units hardly any sample misses a difference that 1 unit in k has, or more."""
    return max(units // SEEN, 1)


def why_guarded(differences: Floats, clusters: Sequence[Hashable] | None = None) -> str:
    """Return why a paired test is not credible; empty where it is."""
    units = differences if clusters is None else cluster_sums(differences, clusters).totals
    what = "cases" if clusters is None else "clusters"
    differ = int(np.count_nonzero(np.abs(units) > _SAME))
    if differ < FEWEST_DIFFERING:
        return f"only {differ} {what} differ" if differ > 1 else f"only one {what[:-1]} differs" if differ else _NONE
    squares = units**2
    largest = float(squares.max() / squares.sum())
    return f"one {what[:-1]} makes up {largest:.0%} of the squares" if largest > LARGEST_SHARE_OF_SQUARES else ""
