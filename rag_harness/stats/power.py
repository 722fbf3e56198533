"""Before the run: which difference of means so many cases can detect, and how many a difference needs."""

from __future__ import annotations

from math import floor, isfinite, sqrt
from statistics import NormalDist

from rag_harness.stats.distributions import t_quantile

_MOST_CASES = 100_000_000


def detectable_difference(sd: float, n: int, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the mean difference that a two-sided t-test of n values with this standard deviation finds.

    (t(1 - alpha / 2) + t(power)) · sd / sqrt(n), with n - 1 degrees of freedom: 2.80 · sd / sqrt(n) for many.

    Raises:
        ValueError: n is below 2, ``sd`` is not above 0, or a share is none.
    """
    if n < 2 or not (isfinite(sd) and sd > 0) or not 0.5 <= power < 1 or not 0 < alpha < 0.5:
        found = f"n = {n}, sd = {sd}, power = {power}, alpha = {alpha}"
        raise ValueError(f"detectable_difference needs n >= 2, sd > 0, 0.5 <= power < 1, 0 < alpha < 0.5; got {found}.")
    return (t_quantile(1 - alpha / 2, n - 1) + t_quantile(power, n - 1)) * sd / sqrt(n)


def cases_needed(sd: float, difference: float, power: float = 0.8, alpha: float = 0.05) -> int:
    """Return the smallest n whose detectable difference is at most ``difference``.

    Raises:
        ValueError: ``difference`` is not above 0, or it needs more than 100 million cases.
    """
    if not (isfinite(difference) and difference > 0):
        raise ValueError(f"cases_needed needs a difference above 0; got {difference}.")
    if detectable_difference(sd, _MOST_CASES, power, alpha) > difference:
        raise ValueError(f"a difference of {difference:g} needs more than {_MOST_CASES:,} cases.")
    # Student's t is wider than the normal distribution, so that no fewer than this will do; a few more always do.
    low = max(1, floor((_normal(power, alpha) * sd / difference) ** 2 * (1 - 1e-9)))
    step = 1
    while detectable_difference(sd, max(2, low + step), power, alpha) > difference:
        low, step = low + step, 2 * step
    high = max(2, low + step)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if detectable_difference(sd, middle, power, alpha) <= difference else (middle, high)
    return high


def _normal(power: float, alpha: float) -> float:
    return NormalDist().inv_cdf(1 - alpha / 2) + NormalDist().inv_cdf(power)
