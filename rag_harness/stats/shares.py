"""Exact bounds of a share: for all cases like these, and for a finite population that was partly looked at."""

from __future__ import annotations

from collections.abc import Callable

from rag_harness.stats.binomial import binomial_distribution, hypergeometric_distribution
from rag_harness.stats.inputs import checked_confidence
from rag_harness.stats.intervals import Interval

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
