"""Intervals of a proportion and of a mean."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from rag_harness.stats.inputs import Values, checked, differences_of, floats, positive
from rag_harness.stats.resampling import resampled_means


class Interval(NamedTuple):
    """Two-sided bounds, in the unit of the values."""

    low: float
    high: float


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound a proportion, in [0, 1]: Wilson's score interval without continuity correction (Wilson 1927)."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"wilson_interval needs 0 <= successes <= n and n >= 1; got {successes} of {n}.")
    z = NormalDist().inv_cdf(0.5 + checked(confidence) / 2)
    p = successes / n
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the bound is exactly 0 or 1, which rounding would miss.
    return Interval(center - half if successes else 0.0, center + half if successes < n else 1.0)


def bootstrap_interval(values: Values, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Bound the mean of the values, in their unit: percentile bootstrap over queries (Efron 1979)."""
    array = floats(values, "bootstrap_interval")
    return _percentiles(array.tobytes(), (1 - checked(confidence)) / 2, positive(resamples), seed)


@lru_cache(maxsize=8)  # experiments that differ in their answers alone have equal values of what they found
def _percentiles(values: bytes, tail: float, resamples: int, seed: int) -> Interval:
    means = resampled_means(np.frombuffer(values), resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def paired_bootstrap_interval(
    a: Values, b: Values, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Bound the mean of a - b, value by value of the same queries: percentile bootstrap over queries."""
    differences = differences_of(a, b, "paired_bootstrap_interval")
    return bootstrap_interval(differences, confidence=confidence, resamples=resamples, seed=seed)
