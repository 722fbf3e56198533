"""Paired comparison of values of the same cases, and the number of cases that a bound needs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from math import ceil, erfc, inf, isclose, isnan, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from rag_harness.stats.distributions import t_outside, t_quantile
from rag_harness.stats.inputs import (
    Floats,
    Interval,
    UndefinedError,
    Values,
    by_chunks,
    checked_confidence,
    differences_of,
    floats,
    pairs_of,
    positive,
)
from rag_harness.stats.means import (
    MANY_CASES,
    ValueRange,
    cluster_sums,
    drawn_differences,
    estimate,
    mean_bounds,
    of_these,
    skew_term,
    skewed_t_bounds,
    standard_error,
)

# Differences, intervals, p-values and corrections for multiple tests.

# Bounds of a mean difference over the same cases. They decide which of two is better.
#
# With few cases no assumption-free bound can show small differences: an unseen case may differ by the whole range
# (Bahadur & Savage 1956). This bound is Student's paired t with a term for skewness. It assumes that no large
# difference is so rare that the cases could miss it (``rarest_seen``): a sample without any looks like a sample of
# cases that have none. Where cases show that this is not credible, a guard takes the assumption-free bounds instead.

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


# A paired permutation test, without assumptions about the values.

MANY_PAIRS = 50_000
"""Number of differences from which their sum under random signs is taken as normal."""
_DOMINANT = 1e-3
"""Highest share of the sum's variance of one difference. Above it, the sum is far from normal."""
_BLOCK = 12
"""Differences whose signs are drawn together: their 2**12 signed sums fill 32 KB, the first cache of a core."""


def permutation_test(a: Values, b: Values, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p-value, in (0, 1], that the mean of a - b is 0: Fisher's paired randomization test.

    p is the share of sign assignments whose sum is at least as far from 0 as the observed one. All assignments are
    counted where there are at most ``resamples`` (up to 13 different pairs, by default). Otherwise ``resamples`` are
    drawn and p = (count + 1) / (resamples + 1), which is never 0 (Phipson & Smyth 2010). Smucker et al. 2007 recommend
    the test for comparing retrieval runs.

    For 50,000 differences or more, none of which dominates, the sums are taken as normal. Differences of equal size are
    the worst case: p = 0.05 then has an error of 0.0005, where 10,000 draws have a standard error of 0.0022. p is at
    least the smallest value that draws can give.
    """
    differences = differences_of(a, b, "permutation_test")
    # A difference of 0 does not change the sum, whatever its sign.
    differences = differences[differences != 0]
    if _is_normal(differences):
        return max(1 / (positive(resamples) + 1), _by_normal(differences))
    exact = len(differences) < positive(resamples).bit_length()
    rng = np.random.default_rng(seed)
    sums = _signed_sums(differences) if exact else _drawn_signed_sums(differences, resamples, rng)
    # Mathematically equal sums differ by rounding, and must count as equal.
    bound = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    extreme = int(np.count_nonzero(np.abs(sums) >= bound))
    return extreme / len(sums) if exact else (extreme + 1) / (resamples + 1)


def _is_normal(differences: Floats) -> bool:
    squares = differences**2
    return len(squares) >= MANY_PAIRS and bool(squares.max() <= _DOMINANT * squares.sum())


def _by_normal(differences: Floats) -> float:
    """Return the share of signed sums as far from 0 as the observed one. Their variance is the sum of squares."""
    return erfc(abs(float(differences.sum())) / sqrt(2 * float((differences**2).sum())))


def _signed_sums(values: Floats) -> Floats:
    """Return the sums of the values under all 2**n assignments of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums - value, sums + value))
    return sums


def _drawn_signed_sums(values: Floats, resamples: int, rng: np.random.Generator) -> Floats:
    """Return the sums under random signs. One random number chooses the signs of a whole block of values."""
    total = np.zeros(resamples)
    for start in range(0, len(values), _BLOCK):
        sums = _signed_sums(values[start : start + _BLOCK])
        total += sums[rng.integers(0, len(sums), resamples)]
    return total


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

    The interval is the one of gates that ask which is better (``difference_bounds``). The tests are the paired t-test
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
        ValueError: the lists are empty or differ in length, or a value is NaN or infinite.
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
    """Return the quantile of a minus the quantile of b (nearest rank), by percentile bootstrap over cases (Efron 1979).

    Cases are drawn with both their values, and the cases of one cluster together. The result has no p-value: a t-test
    is about means.

    Raises:
        ValueError: the lists are empty or differ in length, or a value is NaN or infinite.
        UndefinedError: the values are so few that the quantile is the largest one, which no resample exceeds; or all
            differences are equal, as they then are in all resamples.
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
    if len(first) >= MANY_CASES:
        return drawn_differences(first, second, place, resamples, rng)
    return by_chunks(resamples, len(first), lambda rows: _drawn(first, second, place, rows, rng))


def _drawn(first: Floats, second: Floats, place: int, rows: int, rng: np.random.Generator) -> Floats:
    chosen = rng.integers(0, len(first), (rows, len(first)))
    at = [np.partition(values[chosen], place, axis=1)[:, place] for values in (first, second)]
    return np.asarray(at[0] - at[1])


def spread_of(a: Values, b: Values | None = None) -> float:
    """Return the standard deviation (n - 1) of the values, or of a - b.

    Raises:
        ValueError: the list is empty, or a value is NaN or infinite.
        UndefinedError: the list has one value, or all are equal, so the variance of others is unknown.
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


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for multiple tests, in the given order: Holm's step-down method (Holm 1979).

    The i-th smallest of m becomes the largest of (m - j + 1) * p_j over j <= i, at most 1. Adjusted values up to alpha
    are significant with a family-wise error rate of alpha, however the tests depend on each other.
    """
    p = _checked(p_values, "holm")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]


def holm_counts(p_values: Sequence[float], alpha: float = 0.05) -> list[int]:
    """Return among how many tests Holm's procedure judges each, in the given order: m, m - 1, … until one fails.

    A test is significant where its p is at most alpha / count. So an interval of confidence 1 - alpha / count excludes
    what the test rejects, and no other does. Equal p-values have the same count.
    """
    p = _checked(p_values, "holm_counts")
    order = np.argsort(p, kind="stable")
    left = np.arange(len(p), 0, -1)
    failed = np.flatnonzero(p[order] * left > alpha)
    if len(failed):
        left[failed[0] :] = left[failed[0]]
    counts = np.empty_like(left)
    counts[order] = left[np.searchsorted(p[order], p[order])]
    return [int(count) for count in counts]


def _checked(p_values: Sequence[float], who: str) -> Floats:
    p = floats(p_values, who)
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"{who} needs p-values from 0 to 1; got {p.min():g} to {p.max():g}.")
    return p


# Each simulated run has cases like the observed ones. Its bound is computed from the run's moments, because 10,000
# weights for each of some hundred runs would take minutes. Student's bound has a formula. Gaffke's is computed from the
# moments of a mean with Dirichlet weights, and Cornish & Fisher's expansion of its quantile (1938).

_RUNS = 600
_BINS = 200
"""Most different values: of more, neighbours are replaced by their mean."""
_MOST_CASES = 100_000_000
_NO_SPREAD = 1e-24
_NEAR = 1.02
"""The number of cases is found to 2 %: simulation is not more precise."""


class BoundReach:
    """The distance of a run's lower bound below its mean.

    Args:
        values: one for each case of a run; for an upper bound, their negatives.
        span: lowest and highest possible value, where that is known.
        confidence: confidence of the bound.
        is_difference: whether the bound is the paired test's, with its guard (``difference_bounds``).
        clusters: cluster of each case; None where there are none.
        power: share of runs in which the bound must be as good.
    """

    def __init__(
        self,
        values: Values,
        span: ValueRange | None = None,
        confidence: float = 0.95,
        *,
        is_difference: bool = False,
        clusters: Sequence[Hashable] | None = None,
        power: float = 0.8,
    ) -> None:
        array = floats(values, "BoundReach")
        self._mean, self._confidence, self._power = (
            float(array.mean()),
            checked_confidence(confidence),
            checked_confidence(power),
        )
        self._places, counts = _told_apart(array)
        self._shares = counts / counts.sum()
        self._least, self._is_difference = (span[0] if span else None), is_difference
        # Number of clustered cases with as much information as one independent case.
        self._alike = 1.0
        if clusters is not None and len(set(clusters)) < len(array):
            self._alike = len(array) / self._worth(array, span, clusters)

    def of(self, n: int) -> float:
        """Return how far the mean must be from a threshold, so that ``power`` of runs of n cases show it."""
        return self._gap(max(2, round(n / self._alike)), self._power)

    def _gap(self, alone: int, power: float) -> float:
        """Return how far below the mean the bound of ``alone`` independent cases is in that share of runs, or less."""
        counts = np.random.default_rng(0).multinomial(alone, self._shares, _RUNS).astype(float)
        with np.errstate(invalid="ignore"):
            bound = float(np.quantile(self._lower(counts, alone), 1 - power))
        # Where runs have no bound at all, the quantile lies among infinite numbers and is none.
        return inf if isnan(bound) else self._mean - bound

    def _worth(self, array: Floats, span: ValueRange | None, clusters: Sequence[Hashable]) -> int:
        """Return how many independent cases like these have a bound as near to the mean as the clusters have."""
        find = self._difference_bound if self._is_difference else self._mean_bound
        try:
            gap = self._mean - find(array, span, clusters)
        except UndefinedError:
            return 1
        low, high = 1, len(array)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._gap(max(2, middle), 0.5) <= gap else (middle + 1, high)
        return high

    def _mean_bound(self, array: Floats, span: ValueRange | None, clusters: Sequence[Hashable]) -> float:
        return mean_bounds(array, span, self._confidence, clusters).low

    def _difference_bound(self, array: Floats, span: ValueRange | None, clusters: Sequence[Hashable]) -> float:
        return difference_bounds(array, span, self._confidence, clusters).interval.low

    def cases(self, gap: float) -> int | None:
        """Return the number of cases needed where the mean is ``gap`` away from the threshold.

        None where the gap is 0, or where more than 100 million cases are needed.
        """
        if gap <= 0 or isclose(gap, 0, abs_tol=1e-12) or self.of(_MOST_CASES) > gap:
            return None
        low, high = 1, 2
        while self.of(high) > gap:
            low, high = high, 2 * high
        while high > low + 1 and high > low * _NEAR:
            middle = (low + high) // 2
            low, high = (low, middle) if self.of(middle) <= gap else (middle, high)
        return high

    def _lower(self, counts: Floats, n: int) -> Floats:
        """Return the lower bound of each run, shape (runs,), from the count of each value."""
        without = self._without(counts, n)
        if not self._is_difference and self._least is not None:
            return without
        places = self._places
        mean = counts @ places / n
        second, third = (counts @ (places - self._mean) ** power / n for power in (2, 3))
        shift = mean - self._mean
        variance = np.maximum(second - shift**2, 0.0)
        skewness = (third - 3 * shift * second + 2 * shift**3) / _above_0(variance) ** 1.5
        t = t_quantile(self._confidence, n - 1)
        more = np.maximum(-skew_term(1.0, t, n) * skewness, 0.0)
        found = mean - np.sqrt(variance / (n - 1)) * (t + more)
        if self._is_difference:
            squares = counts @ places**2
            largest = np.max(np.where(counts > 0, places**2, 0.0), axis=1)
            guarded = (counts[:, places != 0].sum(axis=1) < FEWEST_DIFFERING) | (
                largest > LARGEST_SHARE_OF_SQUARES * squares
            )
            return np.where(guarded | (variance <= _NO_SPREAD), without, found)
        return np.where(variance > _NO_SPREAD, found, -np.inf)

    def _without(self, counts: Floats, n: int) -> Floats:
        """Return Gaffke's bound: the quantile of a mean with Dirichlet weights, over n cases and one worst case."""
        if self._least is None:
            return np.full(len(counts), -np.inf)
        every = n + 1
        mean = (counts @ self._places + self._least) / every
        moment = partial(self._central, counts, mean)
        spread = moment(2) / (every + 1)
        third = 2 * moment(3) / ((every + 1) * (every + 2))
        fourth = (6 * moment(4) + 3 * every * moment(2) ** 2) / ((every + 1) * (every + 2) * (every + 3))
        safe = _above_0(spread)
        quantile = _cornish_fisher(1 - self._confidence, third / safe**1.5, fourth / safe**2 - 3)
        return np.maximum(mean + np.sqrt(spread) * quantile, self._least)

    def _central(self, counts: Floats, mean: Floats, power: int) -> Floats:
        """Return a central moment of each run's cases and one worst case."""
        apart = self._places[None, :] - mean[:, None]
        every = (counts * apart**power).sum(axis=1) + ((self._least or 0.0) - mean) ** power
        found: Floats = every / (counts.sum(axis=1) + 1)
        return found


def clustered_spread_of(values: Values, clusters: Sequence[Hashable] | None = None) -> float:
    """Return the standard deviation of a case, in the unit of the values; with clusters, its effective one."""
    array = floats(values, "spread_of")
    sums = cluster_sums(array, clusters)
    return standard_error(sums) * sqrt(len(array)) if len(sums.sizes) > 1 else 0.0


def _told_apart(array: Floats) -> tuple[Floats, Floats]:
    """Return values with their counts, at most ``_BINS`` of them."""
    distinct, counts = np.unique(array, return_counts=True)
    if len(distinct) <= _BINS:
        return distinct, counts.astype(float)
    parts = np.array_split(np.sort(array), _BINS)
    return np.array([part.mean() for part in parts]), np.array([float(len(part)) for part in parts])


def _cornish_fisher(share: float, skewness: Floats, excess: Floats) -> Floats:
    z = NormalDist().inv_cdf(share)
    found: Floats = z + (z**2 - 1) / 6 * skewness + (z**3 - 3 * z) / 24 * excess - (2 * z**3 - 5 * z) / 36 * skewness**2
    return found


def _above_0(values: Floats) -> Floats:
    """Return the values as divisors, with 1 in place of 0: without variance, skewness is undefined."""
    return np.where(values > _NO_SPREAD, values, 1.0)
