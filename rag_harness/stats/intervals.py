"""The type of intervals."""

from __future__ import annotations

from typing import NamedTuple


class Interval(NamedTuple):
    """A lower and an upper bound, in the unit of the values."""

    low: float
    high: float
