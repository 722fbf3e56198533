"""Means of what was measured."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, isfinite


def mean_or_none(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that were measured, or None if none was; the order does not change a digit."""
    measured = [value for value in values if value is not None]
    if not all(map(isfinite, measured)):
        raise ValueError("mean_or_none got NaN or infinity. A value that could not be measured is None.")
    return fsum(measured) / len(measured) if measured else None
