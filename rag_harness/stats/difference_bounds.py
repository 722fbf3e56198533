"""Is one better than the other? Bounds of a mean difference over the same cases, by what differs among them.

No bound without assumptions can tell small differences apart with few cases: a case that nobody has seen may differ by
all that the range allows (Bahadur & Savage 1956). This one is Student's paired t with a term for skewness. It assumes
that no rare, large difference is missing among the cases; where that cannot be believed, a guard takes the bounds
without assumptions instead.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np

from rag_harness.stats.bounded import Span
from rag_harness.stats.clusters import cluster_sums
from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked, floats
from rag_harness.stats.intervals import Interval
from rag_harness.stats.mean_bounds import mean_bounds, of_these
from rag_harness.stats.students import skewed_t_bounds

FEWEST = 10
"""Cases that have to differ."""
MOST = 0.2
"""Of the sum of squares, what one case may make up."""
_SAME = 1e-12
_NONE = "nothing differs"


class DifferenceBounds(NamedTuple):
    """Bounds of a mean difference; ``guarded`` says why no paired test bounds it, and is empty where one does."""

    interval: Interval
    guarded: str = ""


def difference_bounds(
    differences: Values,
    span: Span | None = None,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
    population: int | None = None,
) -> DifferenceBounds:
    """Return a lower and an upper bound of the mean, each of which holds by itself with ``confidence``.

    Args:
        differences: one a case, of the same measure in two experiments.
        span: the least and the greatest that a difference can be, if that is known.
        confidence: of each bound.
        clusters: of each case, where some are alike.
        population: the number of cases that the mean is of, where it is no mean of cases like these but of these.

    Raises:
        UndefinedError, ValueError: as ``mean_bounds``.
    """
    array = floats(differences, "difference_bounds")
    checked(confidence)
    guarded = why_guarded(array, clusters)
    if guarded or population == len(array):
        return DifferenceBounds(mean_bounds(array, span, confidence, clusters, population), guarded)
    try:
        low, high = skewed_t_bounds(array, confidence, clusters)
    except UndefinedError as why:
        return DifferenceBounds(mean_bounds(array, span, confidence, clusters, population), str(why))
    bounds = Interval(max(low, span[0]), min(high, span[1])) if span else Interval(low, high)
    return DifferenceBounds(bounds if population is None else of_these(bounds, array, span, population))


def difference_interval(
    differences: Values,
    span: Span | None = None,
    confidence: float = 0.95,
    clusters: Sequence[Hashable] | None = None,
) -> Interval:
    """Bound the mean on both sides, with ``confidence`` of both ends together.

    Raises:
        UndefinedError, ValueError: as ``mean_bounds``.
    """
    return difference_bounds(differences, span, (1 + checked(confidence)) / 2, clusters).interval


def why_guarded(differences: Floats, clusters: Sequence[Hashable] | None = None) -> str:
    """Return why a paired test cannot be believed; empty where it can."""
    units = differences if clusters is None else cluster_sums(differences, clusters).totals
    what = "cases" if clusters is None else "clusters"
    differ = int(np.count_nonzero(np.abs(units) > _SAME))
    if differ < FEWEST:
        return f"only {differ} {what} differ" if differ > 1 else f"only one {what[:-1]} differs" if differ else _NONE
    squares = units**2
    largest = float(squares.max() / squares.sum())
    return f"one {what[:-1]} makes up {largest:.0%} of the squares" if largest > MOST else ""
