"""Number of cases that a bound needs to separate a mean from a threshold, by simulated runs."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial
from math import inf, isclose, isnan, sqrt
from statistics import NormalDist

import numpy as np

from rag_harness.stats.distributions import t_quantile
from rag_harness.stats.inputs import Floats, UndefinedError, Values, checked_confidence, floats
from rag_harness.stats.means import ValueRange, cluster_sums, mean_bounds, skew_term, standard_error
from rag_harness.stats.paired_tests import FEWEST_DIFFERING, LARGEST_SHARE_OF_SQUARES, difference_bounds

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


def spread_of(values: Values, clusters: Sequence[Hashable] | None = None) -> float:
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
