"""Proportions: exact bounds of a share, and the chance that all of k tries are right (pass^k)."""

from __future__ import annotations

from collections.abc import Callable
from math import comb

import numpy as np
import numpy.typing as npt

from rag_harness.stats.distributions import binomial_distribution, hypergeometric_distribution
from rag_harness.stats.inputs import Floats, Interval, checked_confidence

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


# Several tries of each case: the chance that all of k are right, the worst of k, and how often two disagree.
#
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
