"""Quantiles with distribution-free intervals, also for clusters and for differences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from math import ceil, inf, sqrt

import numpy as np
import numpy.typing as npt

from rag_harness.stats.distributions import beta_quantile, binomial_distribution, t_quantile
from rag_harness.stats.inputs import Floats, Interval, UndefinedError, Values, by_chunks, checked_confidence, floats
from rag_harness.stats.means import cluster_sums, standard_error


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of the ordered values do not exceed (nearest rank); 0 where there are none."""
    if not ordered:
        return 0.0
    rank = ceil(round(share * len(ordered), 9))  # rounded, because 0.07 * 100 is a little more than 7
    return ordered[max(rank, 1) - 1]


def quantile_interval(values: Values, share: float, confidence: float = 0.95) -> Interval:
    """Return an interval of a quantile of the values' distribution, whatever that distribution is.

    The bounds are two of the ordered values (David & Nagaraja 2003, Order Statistics, 7.1). The i-th value is above the
    quantile only where fewer than i values are below the quantile, which has a binomial probability. Each tail is at
    most (1 - confidence) / 2. Where no value is far enough out, the bound is infinite.
    """
    if not 0 < share < 1:
        raise ValueError(f"quantile_interval needs a share between 0 and 1, e.g. 0.95; got {share}.")
    ordered = np.sort(floats(values, "quantile_interval"))
    n, tail = len(ordered), (1 - checked_confidence(confidence)) / 2
    at_most = binomial_distribution(n, share)
    # The i-th value, counted from 1, is above the quantile where at most i - 1 values are below it.
    low = int(np.count_nonzero(at_most <= tail))
    high = int(np.argmax(at_most >= 1 - tail)) + 1
    return Interval(float(ordered[low - 1]) if low else -inf, float(ordered[high - 1]) if high <= n else inf)


# The bootstrap of a quantile's difference for many cases, without drawing all cases.

MANY_CASES = 20_000
"""Number of cases from which this is faster."""
_REACH = 8
"""Standard deviations of a quantile's rank that are considered: only 1e-15 of the samples are further out."""


def drawn_differences(first: Floats, second: Floats, place: int, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the quantile of ``first`` minus that of ``second`` in bootstrap samples of the cases.

    A sample's quantile is one of the values near the quantile. For a case without a value near it, only the side of its
    values matters. So such cases are counted and not drawn.

    Args:
        first: values of one side, shape (cases,).
        second: values of the other side, of the same cases.
        place: position of the quantile among the sorted values, from 0.
        resamples: number of samples.
        rng: random number generator.
    """
    cases, counts = np.unique(_paired(_around(first, place), _around(second, place)), return_counts=True)
    n = len(first)

    def drawn(rows: int) -> Floats:
        times = rng.multinomial(n, counts / n, rows)
        return _quantiles(cases.real, times, place) - _quantiles(cases.imag, times, place)

    return by_chunks(resamples, len(cases), drawn)


def _around(values: Floats, place: int) -> Floats:
    """Return the values; those too far out to be a sample's quantile become infinite, with their sign."""
    n, share = len(values), place / len(values)
    reach = int(_REACH * sqrt(n * share * (1 - share))) + 1
    ends = max(0, place - reach), min(n - 1, place + reach)
    low, high = np.partition(values, ends)[[*ends]]
    return np.where(values < low, -inf, np.where(values > high, inf, values))


def _paired(first: Floats, second: Floats) -> npt.NDArray[np.complex128]:
    """Return pairs as complex numbers, which sort fast. They are made in two steps, because inf * 1j is NaN."""
    pairs = np.empty(len(first), np.complex128)
    pairs.real, pairs.imag = first, second
    return pairs


def _quantiles(values: Floats, times: npt.NDArray[np.int64], place: int) -> Floats:
    """Return the value at a position of each sample; ``times`` has the counts of values, shape (samples, values)."""
    order = np.argsort(values)
    upto = times[:, order].cumsum(axis=1)
    return np.asarray(values[order][(upto > place).argmax(axis=1)])


# Bounds of a quantile where cases are alike: those of the share of cases up to a value, turned round (Woodruff 1952).
#
# The share of cases up to a value has Clopper & Pearson's bounds for as many independent cases as the clusters are
# worth (Korn & Graubard 1998, Survey Methodology 24).


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
