"""Bounds of a quantile where cases are alike: those of the share of cases up to a value, turned round (Woodruff 1952).

The share of cases up to a value has Clopper & Pearson's bounds for as many independent cases as the clusters are worth
(Korn & Graubard 1998, Survey Methodology 24).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import inf

import numpy as np

from rag_harness.stats.clusters import cluster_sums, standard_error
from rag_harness.stats.distributions import beta_quantile, t_quantile
from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked_confidence, floats
from rag_harness.stats.intervals import Interval
from rag_harness.stats.quantiles import quantile, quantile_interval


def clustered_quantile_bounds(
    values: Values, share: float, clusters: Sequence[Hashable], confidence: float = 0.95
) -> Interval:
    """Return a lower and an upper bound of a quantile. Each holds by itself with ``confidence``.

    The quantile is at most x where at least ``share`` of all cases lie up to x; that is sure where the lower bound of
    this share says so. An end is infinite where no value is far enough out.

    Raises:
        UndefinedError: all cases are of one cluster.
        ValueError: no values, NaN, or a share that is not between 0 and 1.
    """
    if not 0 < share < 1:
        raise ValueError(f"a quantile needs a share between 0 and 1, e.g. 0.95; got {share}.")
    unsorted = floats(values, "clustered_quantile_bounds")
    if len(set(clusters)) < 2:
        raise UndefinedError("all cases are of one cluster, which bounds nothing")
    worth = _worth(unsorted, share, clusters, checked_confidence(confidence))
    distinct, counts = np.unique(unsorted, return_counts=True)
    up_to = np.cumsum(counts) / len(unsorted)
    before = np.concatenate([[0.0], up_to[:-1]])
    above = _first(up_to, lambda part: _low(part, worth, confidence) >= share)
    below = _first(before, lambda part: _high(part, worth, confidence) > share)
    return Interval(
        float(distinct[below - 1]) if below else -inf, float(distinct[above]) if above < len(distinct) else inf
    )


def quantile_interval_of(values: Values, share: float, clusters: Sequence[Hashable] | None) -> Interval | None:
    """Return the 95 % interval of a quantile, by cluster where cases have any; None where all are of one cluster."""
    if clusters is None or len(set(clusters)) == len(clusters):
        return quantile_interval(values, share)
    try:
        return clustered_quantile_bounds(values, share, clusters, 0.975)
    except UndefinedError:
        return None


def _worth(array: Floats, share: float, clusters: Sequence[Hashable], confidence: float) -> float:
    """Return how many independent cases say as much of the share up to the quantile as these clusters do."""
    ordered, n, count = np.sort(array).tolist(), len(array), len(set(clusters))
    # How alike few cases beyond a far quantile are is hardly known. At the median it is known better.
    effect = max(_design_effect((array <= quantile(ordered, at)).astype(float), clusters) for at in (share, 0.5))
    t = max(confidence, 0.75)
    return max(1.0, n / effect * (t_quantile(t, n - 1) / t_quantile(t, count - 1)) ** 2)


def _design_effect(inside: Floats, clusters: Sequence[Hashable]) -> float:
    """Return the design effect of a share: by how much clusters increase its variance."""
    mean, n = float(inside.mean()), len(inside)
    sums = cluster_sums(inside, clusters)
    if not 0 < mean < 1:
        return n / len(sums.sizes)
    return max(1.0, standard_error(sums) ** 2 * n / (mean * (1 - mean)))


def _first(parts: Floats, holds: Callable[[float], bool]) -> int:
    """Return the place of the first of growing parts for which something holds; their number where it never does."""
    low, high = 0, len(parts)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(float(parts[middle])) else (middle + 1, high)
    return low


def _low(share: float, n: float, confidence: float) -> float:
    return beta_quantile(1 - confidence, share * n, n - share * n + 1) if share > 0 else 0.0


def _high(share: float, n: float, confidence: float) -> float:
    return beta_quantile(confidence, share * n + 1, n - share * n) if share < 1 else 1.0
