"""Intervals and p-values by numpy and scipy; where chance was drawn, between which ends they may be printed.

An end that was estimated from draws is right if it lies between our own quantiles somewhat below and above its level:
four standard errors of both estimates, so that one in 10,000 right ends is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from math import ceil, inf, sqrt
from typing import Any

import numpy as np
import scipy.stats

from tests.unit.page.recount.fits import Ends

DRAWS = 20_000
THEIRS = 10_000
COLUMNS = 150
"""Cases that are drawn for at once; fewer take the first of them."""
_SURE = 4.0
Floats = np.ndarray[Any, np.dtype[np.float64]]
Interval = tuple[float | Ends, float | Ends]


def mean_interval(values: Sequence[float], span: tuple[float, float] | None) -> Interval:
    """Return the 95 % interval of a mean; ``span`` is that of a share, or of the difference of two."""
    return bounds(values, span, 0.025)


def bounds(values: Sequence[float], span: tuple[float, float] | None, tail: float) -> Interval:
    """Return bounds of a mean, each of which holds by itself: of a share with one case unseen, as bad as can be."""
    return _bounds(tuple(values), span, tail)


@cache
def _bounds(values: tuple[float, ...], span: tuple[float, float] | None, tail: float) -> Interval:
    array, n = np.array(values, float), len(values)
    if span is None:
        low, high = _skewed(array, tail)
        return (low if array.min() < 0 else max(low, 0.0)), high
    if span == (0.0, 1.0) and set(values) <= {0.0, 1.0}:
        found = scipy.stats.binomtest(int(array.sum()), n).proportion_ci(1 - 2 * tail, "exact")
        return float(found.low), float(found.high)
    return _bounded(array, span, tail)


def difference_bounds(values: Sequence[float], span: tuple[float, float] | None, tail: float) -> Interval:
    """Return bounds of a mean difference, by the paired t test; by those of a share where few differ, or one much."""
    array = np.array(values, float)
    squares = array**2
    flat = np.ptp(array) <= 1e-12 * max(abs(array).max(), 1e-300)
    if flat or (abs(array) > 1e-12).sum() < 10 or squares.max() > squares.sum() / 5:
        return bounds(values, span, tail)
    low, high = _skewed(array, tail)
    return (max(low, span[0]), min(high, span[1])) if span else (low, high)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile by the nearest rank."""
    return sorted(values)[max(ceil(round(share * len(values), 9)), 1) - 1]


def quantile_interval(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return two of the ordered values between which the quantile lies."""
    ordered, n = sorted(values), len(values)
    below = scipy.stats.binom.cdf(np.arange(n + 1), n, share)
    low, high = int((below <= 0.025 + 1e-12).sum()), int(np.argmax(below >= 0.975 - 1e-12)) + 1
    return ordered[low - 1] if low else -inf, ordered[high - 1] if high <= n else inf


def quantile_difference(first: Sequence[float], second: Sequence[float], share: float) -> Interval:
    """Return the percentile bootstrap, over cases, of the difference of two quantiles."""
    n, rng = len(first), np.random.default_rng(4711)
    chosen = rng.integers(0, n, (DRAWS // 4, n))
    place = max(ceil(round(share * n, 9)), 1) - 1
    at = [np.sort(np.array(side)[chosen], axis=1)[:, place] for side in (first, second)]
    return _ends(at[0] - at[1], max(500, min(2000, 2_000_000 // n)))


def permutation(differences: Sequence[float]) -> Ends:
    """Return the ends of the p-value that the mean difference is 0: all signs where they are few, else some of them."""
    return _permutation(tuple(each for each in differences if each))


@cache
def _permutation(differences: tuple[float, ...]) -> Ends:
    array = np.array(differences, float)
    bound = abs(array.sum()) - 1e-9 * abs(array).sum()
    if 2 ** len(array) <= THEIRS:
        every = np.array(list(product((-1.0, 1.0), repeat=len(array)))).reshape(2 ** len(array), -1)
        p = float((abs(every @ array) >= bound).mean())
        return p, p
    p = (int((abs(_signs(len(array)) @ array) >= bound).sum()) + 1) / (DRAWS + 1)
    error = _SURE * sqrt(max(p, 1 / THEIRS) * (1 - p) * (1 / THEIRS + 1 / DRAWS)) + 1 / THEIRS
    return max(0.0, p - error), min(1.0, p + error)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values for being several."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, most = [0.0] * len(order), 0.0
    for place, which in enumerate(order):
        most = max(most, min(1.0, p_values[which] * (len(order) - place)))
        adjusted[which] = most
    return adjusted


def holm_counts(p_values: Sequence[float]) -> list[int]:
    """Return among how many tests each is judged: one fewer after each that holds, until one fails."""
    counts: dict[float, int] = {}
    left, is_open = len(p_values), True
    for p in sorted(p_values):
        counts.setdefault(p, left)
        is_open = is_open and p * left <= 0.05
        left -= is_open
    return [counts[p] for p in p_values]


def among(*p_values: Sequence[float]) -> list[range]:
    """Return among how many tests each may be judged, where its p lies between those of several lists."""
    every = zip(*map(holm_counts, p_values), strict=True)
    return [range(min(counts), max(counts) + 1) for counts in every]


def _ends(drawn: Floats, theirs: int = THEIRS, tail: float = 0.025) -> Interval:
    """Return where the ends of an interval may lie that others estimated from so many draws of their own."""
    reach = _SURE * sqrt(tail * (1 - tail) * (1 / theirs + 1 / len(drawn)))
    low, high = (np.quantile(drawn, [max(0.0, level - reach), min(1.0, level + reach)]) for level in (tail, 1 - tail))
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _bounded(array: Floats, span: tuple[float, float], tail: float) -> Interval:
    weights, more = _weights(len(array))
    every = weights.sum(axis=1) + more
    lows, highs = ((weights @ array + more * end) / every for end in span)
    return _ends(lows, tail=tail)[0], _ends(highs, tail=tail)[1]


def _skewed(array: Floats, tail: float) -> tuple[float, float]:
    """Return Student's bounds of a mean, wider on the side of the tail."""
    n, mean, error = len(array), float(array.mean()), float(scipy.stats.sem(array))
    t = float(scipy.stats.t.ppf(1 - tail, n - 1))
    more = float(scipy.stats.skew(array)) * (t * t + 2) / (3 * sqrt(n))
    return mean - error * (t + max(0.0, -more)), mean + error * (t + max(0.0, more))


def pair(end: float | Ends) -> Ends:
    """Return the ends of an end: it twice where nothing was drawn."""
    return end if isinstance(end, tuple) else (end, end)


def _signs(n: int) -> Floats:
    return _signs_of(max(n, COLUMNS))[:, :n]


def _weights(n: int) -> tuple[Floats, Floats]:
    weights, more = _weights_of(max(n, COLUMNS))
    return weights[:, :n], more


@cache
def _signs_of(n: int) -> Floats:
    signs = np.random.default_rng(4711).integers(0, 2, (DRAWS, n), dtype=np.int8)
    return 2.0 * signs.astype(np.float64) - 1


@cache
def _weights_of(n: int) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4711)
    return rng.standard_exponential((DRAWS, n)), rng.standard_exponential(DRAWS)
