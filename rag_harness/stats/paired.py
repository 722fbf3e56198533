"""Paired comparison of two lists of values of the same cases: difference, interval, effect size and p-values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import ceil
from typing import NamedTuple

import numpy as np

from rag_harness.stats.bounded import ValueRange
from rag_harness.stats.clusters import cluster_sums, standard_error
from rag_harness.stats.difference_bounds import DifferenceBounds, difference_bounds
from rag_harness.stats.distributions import t_outside
from rag_harness.stats.estimate import estimate
from rag_harness.stats.inputs import (
    Floats,
    UndefinedError,
    Values,
    checked_confidence,
    differences_of,
    pairs_of,
    positive,
)
from rag_harness.stats.intervals import Interval
from rag_harness.stats.permutation import permutation_test
from rag_harness.stats.quantiles_drawn import MANY, drawn_differences
from rag_harness.stats.resampling import by_chunks

_SAME = 1e-12
ONE_PAIR = "one case only"
ALL_EQUAL = "all differences are equal"
ONE_CLUSTER = "all cases are of one cluster"


class Paired(NamedTuple):
    """The results for the differences a - b of n cases.

    ``interval`` is in the unit of the values. ``effect`` is Cohen's d_z, the mean difference in standard deviations of
    the differences. ``p_t`` and ``p_permutation`` are two-sided. Each is None where it is undefined for the
    differences, and ``reason`` says why. ``assumed`` is the number of cases or clusters whose paired t test the
    interval is of; 0 where it needs no assumption.
    """

    n: int
    difference: float
    interval: Interval | None = None
    effect: float | None = None
    p_t: float | None = None
    p_permutation: float | None = None
    reason: str = ""
    clusters: int = 0
    assumed: int = 0

    @property
    def counted(self) -> str:
        """The number of pairs as text, with that of their clusters: ``142 in 30``."""
        return f"{self.n} in {self.clusters}" if self.clusters else str(self.n)


def paired(
    a: Values,
    b: Values,
    *,
    span: ValueRange | None = None,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> Paired:
    """Return mean difference, interval, effect and p-values of a - b, value by value of the same cases.

    The interval is that of gates that ask which is better (``difference_bounds``). The tests are the paired t-test
    (Student 1908) and Fisher's randomization test; d_z is as in Lakens 2013. All are about means; for quantiles use
    ``quantile_difference``.

    Args:
        a: one value for each case.
        b: other value of the same cases.
        span: lowest and highest possible difference, where that is known.
        clusters: cluster of each case. A cluster is tested as one case, by the sum of its differences.
        confidence: confidence of the interval.
        resamples: number of random sign flips, where there are too many to count all.
        seed: seed of the flips.

    Raises:
        ValueError: there are no pairs, or a value is NaN or infinite.
    """
    first, second = pairs_of(a, b, "paired")
    differences = first - second
    n, mean = len(differences), float(differences.mean())
    if n == 1:
        return Paired(n, mean, reason=ONE_PAIR)
    interval, _, assumed = _bounds(differences, span, (1 + checked_confidence(confidence)) / 2, clusters)
    sums = cluster_sums(differences, clusters)
    count = len(sums.sizes)
    of = 0 if clusters is None else count
    # Clusters may have equal means though their cases differ: each conversation lost its last turn.
    if count == 1 or _is_flat(sums.totals / sums.sizes, max(np.abs(first).max(), np.abs(second).max())):
        # A t-test would divide by 0, and equal differences do not show the variance of others.
        return Paired(n, mean, interval, reason=ALL_EQUAL if count > 1 else ONE_CLUSTER, clusters=of)
    t = mean / standard_error(sums)
    by_chance = permutation_test(sums.totals, np.zeros(count), resamples=resamples, seed=seed)
    effect = mean / float(differences.std(ddof=1))
    return Paired(n, mean, interval, effect, t_outside(t, count - 1), by_chance, clusters=of, assumed=assumed)


def _bounds(
    differences: Floats, span: ValueRange | None, confidence: float, clusters: Sequence[Hashable] | None
) -> DifferenceBounds | tuple[None, str, int]:
    try:
        return difference_bounds(differences, span, confidence, clusters)
    except UndefinedError as why:
        return None, str(why), 0


def quantile_difference(
    a: Values,
    b: Values,
    share: float,
    *,
    clusters: Sequence[Hashable] | None = None,
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[float, Interval]:
    """Return the quantile of a minus that of b (nearest rank), with the percentile bootstrap over cases (Efron 1979).

    Cases are drawn with both their values, and those of one cluster together. There is no p-value: a t-test is about
    means.

    Raises:
        ValueError: there are no pairs, or a value is NaN or infinite.
        UndefinedError: there are so few values that the quantile is the largest one, which no resample exceeds; or all
            differences are equal, and so they are in all resamples.
    """
    first, second = pairs_of(a, b, "quantile_difference")
    if not 0 < share < 1:
        raise ValueError(f"quantile_difference needs a share between 0 and 1, e.g. 0.95; got {share}.")
    place = ceil(round(share * len(first), 9)) - 1
    if place == len(first) - 1:
        raise UndefinedError(f"the {share:.0%} quantile of {len(first)} cases is their largest value")
    if _is_flat(first - second, max(np.abs(first).max(), np.abs(second).max())):
        raise UndefinedError(ALL_EQUAL)
    if clusters is not None:
        return _drawn_together(first, second, share, clusters, confidence, positive(resamples), seed)
    drawn = _all_drawn(first, second, place, positive(resamples), np.random.default_rng(seed))
    tail = (1 - checked_confidence(confidence)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(np.sort(first)[place] - np.sort(second)[place]), Interval(float(low), float(high))


def _drawn_together(
    first: Floats,
    second: Floats,
    share: float,
    clusters: Sequence[Hashable],
    confidence: float,
    resamples: int,
    seed: int,
) -> tuple[float, Interval]:
    def difference(one: Floats, other: Floats) -> float:
        at = max(ceil(round(share * len(one), 9)), 1) - 1
        return float(np.partition(one, at)[at] - np.partition(other, at)[at])

    found = estimate(
        difference, first, second, clusters=clusters, confidence=confidence, resamples=resamples, seed=seed
    )
    if found.value is None or found.interval is None:
        raise UndefinedError(found.reason)
    return found.value, found.interval


def _all_drawn(first: Floats, second: Floats, place: int, resamples: int, rng: np.random.Generator) -> Floats:
    if len(first) >= MANY:
        return drawn_differences(first, second, place, resamples, rng)
    return by_chunks(resamples, len(first), lambda rows: _drawn(first, second, place, rows, rng))


def _drawn(first: Floats, second: Floats, place: int, rows: int, rng: np.random.Generator) -> Floats:
    chosen = rng.integers(0, len(first), (rows, len(first)))
    at = [np.partition(values[chosen], place, axis=1)[:, place] for values in (first, second)]
    return np.asarray(at[0] - at[1])


def spread_of(a: Values, b: Values | None = None) -> float:
    """Return the standard deviation (n - 1) of the values, or of a - b.

    Raises:
        ValueError: there are no values, or one is NaN or infinite.
        UndefinedError: there is one value, or all are equal, so the variance of others is unknown.
    """
    values = differences_of(a, np.zeros(len(a)) if b is None else b, "spread_of")
    if len(values) == 1:
        raise UndefinedError(ONE_PAIR)
    if _is_flat(values, np.abs(values).max()):
        raise UndefinedError("all values are equal" if b is None else ALL_EQUAL)
    return float(values.std(ddof=1))


def _is_flat(values: Floats, size: float) -> bool:
    """Whether values differ only by rounding, given the ``size`` of the numbers that they were computed from."""
    return bool(np.ptp(values) <= _SAME * size or not values.std())
