"""Distributions without scipy, and exact bounds of proportions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import comb, exp, isnan, lgamma, log, log1p, sqrt

import numpy as np
import numpy.typing as npt

from rag_harness.stats.inputs import Floats, Interval, checked_confidence

# Student's t, beta and binomial, from the regularised incomplete beta function: the core does not depend on scipy.

_TINY = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 100_000
_SPACING = 4e-16
"""Relative distance of two neighbouring numbers, twice."""


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
    return _root(lambda x: beta_below(x, a, b) - share, -share, 1 - share)


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


def _root(function: Callable[[float], float], at_0: float, at_1: float) -> float:
    """Return where a growing function is 0, by the Illinois method. ``at_0`` and ``at_1`` are its values at 0 and 1.

    Each fourth step halves the bracket, so that a function that is flat for most of it takes bounded time.
    """
    low, high, side = 0.0, 1.0, 0
    for step in range(2_000):
        middle = (low + high) / 2
        if middle in (low, high) or high - low <= _SPACING * high:
            break
        guess = (low * at_1 - high * at_0) / (at_1 - at_0)
        x = guess if step % 4 != 3 and low < guess < high else middle
        value = function(x)
        if value < 0:
            low, at_0, at_1 = x, value, at_1 / 2 if side < 0 else at_1
        else:
            high, at_1, at_0 = x, value, at_0 / 2 if side > 0 else at_0
        side = -1 if value < 0 else 1
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


_HALVINGS = 50
"""Bisections of a share's range: the bound is then exact to 1e-15."""


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return an interval of a share, in [0, 1], by both tails of the binomial distribution (Clopper & Pearson 1934)."""
    return share_bounds(successes, n, (1 + checked_confidence(confidence)) / 2)


def share_bounds(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Return a lower and an upper bound of a share. Each holds by itself with ``confidence``.

    The lower bound is the smallest share for which as many or more successes have a probability above 1 - confidence.
    """
    _check(successes, n)
    least, low, high = 1 - checked_confidence(confidence), 0.0, 1.0
    if successes:
        low = _border(lambda share: 1 - binomial_distribution(n, share)[successes - 1] > least)
    if successes < n:
        high = 1 - _border(lambda share: binomial_distribution(n, 1 - share)[successes] > least)
    return Interval(low, high)


def finite_share_bounds(successes: int, n: int, population: int, confidence: float = 0.95) -> Interval:
    """Return the same bounds for ``population`` cases, of which ``n`` were drawn without replacement.

    Raises:
        ValueError: n is larger than the population.
    """
    _check(successes, n)
    if n > population:
        raise ValueError(f"{n} cases cannot be drawn from a population of {population}.")
    # A probability that is exactly 5 % is excluded, whichever way it was rounded.
    least, unseen = (1 - checked_confidence(confidence)) * (1 + 1e-9), population - n

    def high_enough(more: int) -> bool:
        chance = hypergeometric_distribution(n, successes + more, population)
        return not successes or 1 - chance[successes - 1] > least

    def low_enough(more: int) -> bool:
        return bool(hypergeometric_distribution(n, successes + unseen - more, population)[successes] > least)

    low, high = _first(high_enough, unseen), unseen - _first(low_enough, unseen)
    return Interval((successes + low) / population, (successes + high) / population)


def _check(successes: int, n: int) -> None:
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"bounds of a share need 0 <= successes <= n and n >= 1; got {successes} of {n}.")


def _border(holds: Callable[[float], bool]) -> float:
    """Return where a condition that holds at 1 begins to hold, between 0 and 1."""
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return low


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Return the smallest number for which a condition holds that holds for ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


# A case has n tries, and k of them are drawn without replacement. Each function returns one number a case, the mean
# over all draws. That is an unbiased estimate of what k new tries of the case come to. So a mean over cases has one
# value a case, and its bounds count cases, not tries.

Rights = npt.NDArray[np.bool_]
"""Whether each try is right, shape (cases, tries)."""


def all_right(right: Rights, k: int) -> Floats:
    """Return C(c, k) / C(n, k) for each case, with c right tries of n: pass^k (Yao et al. 2024, arXiv 2406.12045).

    Raises:
        ValueError: k is below 1, or above the number of tries.
    """
    n = _checked(right.shape[1], k)
    chance = np.array([comb(c, k) / comb(n, k) for c in range(n + 1)])
    found: Floats = chance[right.sum(axis=1)]
    return found


def worst_of(values: Floats, k: int, low_is_worst: bool = True) -> Floats:
    """Return the mean worst value of k tries for each case, from values of shape (cases, tries).

    The ith lowest of n values is the lowest of C(n - i, k - 1) of the C(n, k) draws.

    Raises:
        ValueError: k is below 1, or above the number of tries.
    """
    n = _checked(values.shape[1], k)
    ordered = np.sort(values, axis=1) if low_is_worst else -np.sort(-values, axis=1)
    shares = np.array([comb(n - i, k - 1) / comb(n, k) for i in range(1, n + 1)])
    # Rounding may carry a sum of shares beyond the values that it is made of.
    found: Floats = np.clip(ordered @ shares, values.min(axis=1), values.max(axis=1))
    return found


def flips(right: Rights) -> Floats:
    """Return for each case the chance that of two tries one is right and one is wrong.

    Raises:
        ValueError: there are fewer than 2 tries.
    """
    n = _checked(right.shape[1], 2)
    count = right.sum(axis=1)
    found: Floats = 2 * count * (n - count) / (n * (n - 1))
    return found


def _checked(n: int, k: int) -> int:
    if not 1 <= k <= n:
        raise ValueError(f"k tries are drawn from those of a case, so k is 1 to {n}; got {k}.")
    return n
