"""Quantiles of Student's t for whole degrees of freedom: scipy is no dependency of the core."""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, pi, sin, sqrt


@lru_cache
def t_quantile(share: float, freedom: int) -> float:
    """Return the value that ``share`` of Student's t falls below, 0.5 <= share < 1, to 1e-9 of it."""
    if not 0.5 <= share < 1 or freedom < 1:
        raise ValueError(f"t_quantile needs 0.5 <= share < 1 and freedom >= 1; got {share} and {freedom}.")
    low, high = 0.0, 1.0
    while _within(high, freedom) < 2 * share - 1:
        high *= 2
    while high - low > 1e-10 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, freedom) < 2 * share - 1 else (low, middle)
    return (low + high) / 2


def _within(t: float, freedom: int) -> float:
    """Return P(|T| <= t) by the finite sums of Abramowitz & Stegun 26.7.3 and 26.7.4."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = total = cos(angle) if odd else 1.0
    for i in range(2 + odd, freedom - 1, 2):
        term *= (i - 1) / i * cos(angle) ** 2
        total += term
    if not odd:
        return sin(angle) * total
    return 2 / pi * (angle + (sin(angle) * total if freedom > 1 else 0.0))
