"""Intervals, paired tests and corrections: pure functions over one value per query.

A value that could not be measured (None) is left out by the caller, who also says how many there were; for a paired
function the whole pair is left out. NaN, infinity and empty input are a ValueError. Equal seeds give equal results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import ceil, fsum, inf, isfinite, sqrt
from statistics import NormalDist
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Values: TypeAlias = "Sequence[float] | npt.NDArray[np.float64]"
_Floats = npt.NDArray[np.float64]

_CHUNK = 1 << 20
"""Random numbers held at once: 8 MB of indices, and as much of the values they pick."""
_BLOCK = 12
"""Differences whose signs are drawn together: their 2**12 signed sums fill 32 KB, a core's first cache."""


class Interval(NamedTuple):
    """Two-sided bounds, in the unit of the values."""

    low: float
    high: float


def wilson_interval(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Bound a proportion, in [0, 1]: Wilson's score interval without continuity correction (Wilson 1927)."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"wilson_interval needs 0 <= successes <= n and n >= 1; got {successes} of {n}.")
    z = NormalDist().inv_cdf(0.5 + _checked(confidence) / 2)
    p = successes / n
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the bound is exactly 0 or 1, which rounding would miss.
    return Interval(center - half if successes else 0.0, center + half if successes < n else 1.0)


def bootstrap_interval(values: Values, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0) -> Interval:
    """Bound the mean of the values, in their unit: percentile bootstrap over queries (Efron 1979)."""
    array = _array(values, "bootstrap_interval")
    tail = (1 - _checked(confidence)) / 2
    means = _resampled_means(array, _positive(resamples), np.random.default_rng(seed))
    low, high = np.quantile(means, [tail, 1 - tail])
    return Interval(float(low), float(high))


def paired_bootstrap_interval(
    a: Values, b: Values, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval:
    """Bound the mean of a - b, value by value of the same queries: percentile bootstrap over queries."""
    differences = _differences(a, b, "paired_bootstrap_interval")
    return bootstrap_interval(differences, confidence=confidence, resamples=resamples, seed=seed)


def quantile(ordered: Sequence[float], share: float) -> float:
    """Return the value that ``share`` of the ordered values do not exceed (nearest rank); 0 where there are none."""
    if not ordered:
        return 0.0
    rank = ceil(round(share * len(ordered), 9))  # rounded, because 0.07 * 100 is a little more than 7
    return ordered[max(rank, 1) - 1]


def quantile_interval(values: Values, share: float, confidence: float = 0.95) -> Interval:
    """Bound a quantile of what the values were drawn from, in their unit, whatever its distribution.

    The bounds are two of the ordered values (David & Nagaraja 2003, Order Statistics, 7.1): the i-th is at most the
    quantile unless fewer than i values fall below it, which has a binomial probability. Each tail is at most
    (1 - confidence) / 2; where no value is far enough out, the bound is infinite.
    """
    if not 0 < share < 1:
        raise ValueError(f"quantile_interval needs a share between 0 and 1, e.g. 0.95; got {share}.")
    ordered = np.sort(_array(values, "quantile_interval"))
    n, tail = len(ordered), (1 - _checked(confidence)) / 2
    at_most = _binomial_distribution(n, share)
    # The i-th value, counted from 1, lies above the quantile where at most i - 1 values lie below it.
    low = int(np.count_nonzero(at_most <= tail))
    high = int(np.argmax(at_most >= 1 - tail)) + 1
    return Interval(float(ordered[low - 1]) if low else -inf, float(ordered[high - 1]) if high <= n else inf)


def _binomial_distribution(n: int, share: float) -> _Floats:
    """Return P(X <= i) for i = 0 … n of n tries that succeed with ``share``, by logarithms: factorials overflow."""
    i = np.arange(n + 1)
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    terms = logs[n] - logs[i] - logs[n - i] + i * np.log(share) + (n - i) * np.log1p(-share)
    return np.asarray(np.minimum(np.cumsum(np.exp(terms)), 1.0))


def permutation_test(a: Values, b: Values, *, resamples: int = 10_000, seed: int = 0) -> float:
    """Return the two-sided p-value, in (0, 1], that the mean of a - b is 0: Fisher's paired randomization test.

    p is the share of sign assignments to the differences whose sum is at least as far from 0 as the one observed.
    All are counted where there are no more than ``resamples`` of them (up to 13 queries that differ, by default);
    else ``resamples`` are drawn and p = (count + 1) / (resamples + 1), which is never 0 (Phipson & Smyth 2010).
    Smucker et al. 2007 recommend the test for comparing retrieval runs.
    """
    differences = _differences(a, b, "permutation_test")
    # A difference of 0 adds nothing whatever its sign.
    differences = differences[differences != 0]
    exact = len(differences) < _positive(resamples).bit_length()
    rng = np.random.default_rng(seed)
    sums = _signed_sums(differences) if exact else _drawn_signed_sums(differences, resamples, rng)
    # Sums that are equal on paper differ by rounding, and must count as equal.
    bound = abs(differences.sum()) - 1e-12 * np.abs(differences).sum()
    extreme = int(np.count_nonzero(np.abs(sums) >= bound))
    return extreme / len(sums) if exact else (extreme + 1) / (resamples + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for being several, in the order given: Holm's step-down method (Holm 1979).

    The i-th smallest of m becomes the largest of (m - j + 1) * p_j over j <= i, at most 1. Those at or below alpha are
    significant with a family-wise error rate of alpha, however the tests depend on each other.
    """
    p = _array(p_values, "holm")
    if p.min() < 0 or p.max() > 1:
        raise ValueError(f"holm needs p-values from 0 to 1; got {p.min():g} to {p.max():g}.")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return [float(value) for value in adjusted]


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that were measured, or None if none was; the order does not change a digit."""
    measured = [value for value in values if value is not None]
    if not all(map(isfinite, measured)):
        raise ValueError("mean_or_none got NaN or infinity. A value that could not be measured is None.")
    return fsum(measured) / len(measured) if measured else None


def _resampled_means(values: _Floats, resamples: int, rng: np.random.Generator) -> _Floats:
    """Return the means of ``resamples`` samples of the values, each as large as they are, with replacement."""
    n = len(values)
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) * 16 > n:
        return _by_chunks(resamples, n, lambda rows: values[rng.integers(0, n, (rows, n))].mean(axis=1))
    # How often each distinct value comes up is multinomial: one draw per value, where hits and ranks take few values.
    return _by_chunks(resamples, len(distinct), lambda rows: rng.multinomial(n, counts / n, rows) @ distinct / n)


def _by_chunks(rows: int, width: int, draw: Callable[[int], _Floats]) -> _Floats:
    """Join ``draw(size)`` over chunks of ``rows`` that hold about ``_CHUNK`` numbers, or one row if that is more."""
    step = max(1, _CHUNK // width)
    return np.concatenate([draw(min(step, rows - start)) for start in range(0, rows, step)])


def _signed_sums(values: _Floats) -> _Floats:
    """Return the sums of the values under all 2**n assignments of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate((sums - value, sums + value))
    return sums


def _drawn_signed_sums(values: _Floats, resamples: int, rng: np.random.Generator) -> _Floats:
    """Return the sums under random signs; one random number picks the signs of a whole block of values."""
    total = np.zeros(resamples)
    for start in range(0, len(values), _BLOCK):
        sums = _signed_sums(values[start : start + _BLOCK])
        total += sums[rng.integers(0, len(sums), resamples)]
    return total


def _differences(a: Values, b: Values, who: str) -> _Floats:
    first, second = _array(a, who), _array(b, who)
    if len(first) != len(second):
        raise ValueError(f"{who} needs pairs, one value of each per query; got {len(first)} and {len(second)} values.")
    return first - second


def _array(values: Values, who: str) -> _Floats:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size:
        raise ValueError(f"{who} needs a flat list of at least one value; got shape {array.shape}.")
    bad = int(np.count_nonzero(~np.isfinite(array)))
    if bad:
        raise ValueError(f"{who} got {bad} NaN or infinite of {array.size} values. Leave out what was not measured.")
    return array


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is a share between 0 and 1, e.g. 0.95; got {confidence}.")
    return confidence


def _positive(resamples: int) -> int:
    if resamples < 1:
        raise ValueError(f"resamples must be 1 or more; got {resamples}.")
    return resamples
