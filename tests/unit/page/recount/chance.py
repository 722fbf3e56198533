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
_SURE = 4.0
Floats = np.ndarray[Any, np.dtype[np.float64]]
Interval = tuple[float | Ends, float | Ends]


def mean_interval(values: Sequence[float], span: tuple[float, float] | None) -> Interval:
    """Return the 95 % interval of a mean; ``span`` is that of a share, or of the difference of two."""
    array, n = np.array(values, float), len(values)
    if set(values) <= {0.0, 1.0} and (span is None or span[0] == 0):
        found = scipy.stats.binomtest(int(array.sum()), n).proportion_ci(0.95, "wilson")
        return float(found.low), float(found.high)
    if 100 <= n < 1000:
        return bootstrap(values)
    if n >= 1000 and np.ptp(array) and not span:
        return students_interval(array.tolist())
    if span:
        return _bounded(array, span, 0.025, 0.5)
    if np.ptp(array) <= 1e-12 * max(abs(array).max(), 1e-300):
        return float(array.mean()), float(array.mean())
    return _students(array)


def bootstrap(values: Sequence[float]) -> Interval:
    """Return the percentile bootstrap of a mean."""
    return _ends(_resampled(len(values)) @ np.array(values, float) / len(values))


def bounded(values: Sequence[float], span: tuple[float, float], tail: float) -> Interval:
    """Return bounds of a mean, each of which holds by itself: one case unseen, as bad as can be."""
    return _bounded(np.array(values, float), span, tail, 1.0)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile by the nearest rank."""
    return sorted(values)[max(ceil(round(share * len(values), 9)), 1) - 1]


def quantile_interval(values: Sequence[float], share: float) -> tuple[float, float]:
    """Return two of the ordered values between which the quantile lies."""
    ordered, n = sorted(values), len(values)
    below = scipy.stats.binom.cdf(np.arange(n + 1), n, share)
    low, high = int((below <= 0.025 + 1e-12).sum()), int(np.argmax(below >= 0.975 - 1e-12)) + 1
    return ordered[low - 1] if low else -inf, ordered[high - 1] if high <= n else inf


def students_interval(differences: Sequence[float]) -> tuple[float, float]:
    """Return Student's 95 % interval of a mean difference."""
    found = scipy.stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    return float(found.low), float(found.high)


def quantile_difference(first: Sequence[float], second: Sequence[float], share: float) -> Interval:
    """Return the percentile bootstrap, over cases, of the difference of two quantiles."""
    n, rng = len(first), np.random.default_rng(4711)
    chosen = rng.integers(0, n, (DRAWS // 4, n))
    place = max(ceil(round(share * n, 9)), 1) - 1
    at = [np.sort(np.array(side)[chosen], axis=1)[:, place] for side in (first, second)]
    return _ends(at[0] - at[1], max(500, min(2000, 2_000_000 // n)))


def permutation(differences: Sequence[float]) -> Ends:
    """Return the ends of the p-value that the mean difference is 0: all signs where they are few, else some of them."""
    array = np.array([each for each in differences if each], float)
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


def _ends(drawn: Floats, theirs: int = THEIRS, tail: float = 0.025) -> Interval:
    """Return where the ends of an interval may lie that others estimated from so many draws of their own."""
    reach = _SURE * sqrt(tail * (1 - tail) * (1 / theirs + 1 / len(drawn)))
    low, high = (np.quantile(drawn, [max(0.0, level - reach), min(1.0, level + reach)]) for level in (tail, 1 - tail))
    return (float(low[0]), float(low[1])), (float(high[0]), float(high[1]))


def _bounded(array: Floats, span: tuple[float, float], tail: float, unseen: float) -> Interval:
    weights, more = _weights(len(array), unseen)
    every = weights.sum(axis=1) + more
    lows, highs = ((weights @ array + more * end) / every for end in span)
    return _ends(lows, tail=tail)[0], _ends(highs, tail=tail)[1]


def _students(array: Floats) -> Interval:
    """Return the wider of Student's t and the bootstrap-t, at either end."""
    n, mean = len(array), float(array.mean())
    error = float(array.std(ddof=1)) / sqrt(n)
    counts = _resampled(n)
    means = counts @ array / n
    errors = np.sqrt(np.maximum(counts @ array**2 / n - means**2, 0) / (n - 1))
    usable = errors > 1e-6 * error
    by_t = students_interval(array.tolist())
    low, high = _ends((mean - means[usable]) / errors[usable] * error + mean)
    (low_0, low_1), (high_0, high_1) = pair(low), pair(high)
    return (min(low_0, by_t[0]), min(low_1, by_t[0])), (max(high_0, by_t[1]), max(high_1, by_t[1]))


def pair(end: float | Ends) -> Ends:
    """Return the ends of an end: it twice where nothing was drawn."""
    return end if isinstance(end, tuple) else (end, end)


@cache
def _resampled(n: int) -> Floats:
    return np.random.default_rng(4711).multinomial(n, np.full(n, 1 / n), DRAWS).astype(float)


@cache
def _signs(n: int) -> Floats:
    return np.random.default_rng(4711).choice([-1.0, 1.0], (DRAWS, n))


@cache
def _weights(n: int, unseen: float) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(4711)
    return rng.standard_exponential((DRAWS, n)), rng.standard_gamma(unseen, DRAWS)
