"""Distributions without scipy: Student's t, beta, binomial and hypergeometric."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import exp, isnan, lgamma, log, log1p, sqrt

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats

# Student's t, beta and binomial, from the regularised incomplete beta function: the core does not depend on scipy.

_TINY = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 100_000


def beta_below(x: float, a: float, b: float) -> float:
    """Return P(X <= x) of the beta distribution: the regularised incomplete beta function I_x(a, b).

    By the continued fraction of Abramowitz & Stegun 26.5.8, to about 1e-12 of the value.

    Raises:
        ValueError: ``a`` or ``b`` is not above 0, or ``x`` is NaN.
    """
    if not (a > 0 and b > 0) or isnan(x):
        raise ValueError(f"beta_below needs a number x and a, b above 0; got {x}, {a}, {b}.")
    if x <= 0 or x >= 1:
        return float(x >= 1)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x))
    # The fraction converges fast only below the mean; above it the other tail is computed.
    if x < (a + 1) / (a + b + 2):
        return min(1.0, front * _fraction(x, a, b) / a)
    return max(0.0, 1 - front * _fraction(1 - x, b, a) / b)


def beta_quantile(share: float, a: float, b: float) -> float:
    """Return the quantile ``share`` of the beta distribution, 0 <= share <= 1."""
    if not 0 <= share <= 1:
        raise ValueError(f"beta_quantile needs a share from 0 to 1; got {share}.")
    if share in (0, 1):
        return float(share)
    return _bisected(lambda x: beta_below(x, a, b) < share, 0.0, 1.0)


def binomial_at_most(count: int, n: int, share: float) -> float:
    """Return P(X <= count) where each of ``n`` trials succeeds with probability ``share``."""
    if n < 0 or not 0 <= share <= 1:
        raise ValueError(f"binomial_at_most needs n >= 0 and a share from 0 to 1; got {n} and {share}.")
    if count < 0 or count >= n:
        return float(count >= n)
    return beta_below(1 - share, n - count, count + 1)


def t_outside(t: float, freedom: float) -> float:
    """Return P(|T| >= |t|) of Student's t: the two-sided p-value."""
    if not freedom > 0 or isnan(t):
        raise ValueError(f"t_outside needs a number t and freedom above 0; got {t} and {freedom}.")
    if abs(t) < 1:  # near the middle, freedom / (freedom + t²) would be rounded to 1
        return 1 - beta_below(t * t / (freedom + t * t), 0.5, freedom / 2)
    return beta_below(freedom / (freedom + t * t), freedom / 2, 0.5)


@lru_cache
def t_quantile(share: float, freedom: float) -> float:
    """Return the quantile ``share`` of Student's t, 0 < share < 1, with a relative error of 1e-9."""
    if not 0 < share < 1 or not freedom > 0:
        raise ValueError(f"t_quantile needs 0 < share < 1 and freedom above 0; got {share} and {freedom}.")
    if share == 0.5:
        return 0.0
    if share < 0.5:
        return -t_quantile(1 - share, freedom)
    if share < 0.75:  # P(|T| <= t) = I_y(1 / 2, freedom / 2) with y = t² / (freedom + t²)
        y = beta_quantile(2 * share - 1, 0.5, freedom / 2)
        return sqrt(freedom * y / (1 - y))
    x = beta_quantile(2 * (1 - share), freedom / 2, 0.5)
    return sqrt(freedom * (1 - x) / x)


def _bisected(is_below: Callable[[float], bool], low: float, high: float) -> float:
    for _ in range(1100):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if is_below(middle) else (low, middle)
    return high


def _fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction by Lentz's method (Numerical Recipes, 6.4)."""
    c, d = 1.0, 1 / _apart(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MOST_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / _apart(1 + term * d), _apart(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < _PRECISION:
            break
    return value


def _apart(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


# Binomial and hypergeometric distributions, by logarithms: factorials overflow, and the core does not depend on scipy.


def binomial_distribution(n: int, share: float) -> Floats:
    """Return P(X <= i) for i = 0 … n, where n trials succeed with probability ``share``, strictly between 0 and 1."""
    i = np.arange(n + 1)
    logs = _log_factorials(n)
    terms = logs[n] - logs[i] - logs[n - i] + i * np.log(share) + (n - i) * np.log1p(-share)
    return np.asarray(np.minimum(np.cumsum(np.exp(terms)), 1.0))


def hypergeometric_distribution(n: int, successes: int, population: int) -> Floats:
    """Return P(X <= i) for i = 0 … n of n cases drawn without replacement from ``population``, ``successes`` in it."""
    logs = _log_factorials(population)
    i = np.arange(max(0, n - (population - successes)), min(n, successes) + 1)
    terms = _log_choose(logs, successes, i) + _log_choose(logs, population - successes, n - i)
    chances = np.zeros(n + 1)
    chances[i] = np.exp(terms - _log_choose(logs, population, np.array(n)))
    return np.asarray(np.minimum(np.cumsum(chances), 1.0))


def _log_factorials(n: int) -> Floats:
    return np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))


def _log_choose(logs: Floats, n: int, k: npt.NDArray[np.intp]) -> Floats:
    return np.asarray(logs[n] - logs[k] - logs[n - k])
