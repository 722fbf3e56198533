"""Assigns values to the nine colours of a heat map."""

from __future__ import annotations

BUCKETS = 9
_MIDDLE = 4
# A narrower span cannot be divided by nine in floating point.
_POINT = 1e-100


def bucket(value: float, span: tuple[float, float]) -> int:
    """Return the colour of a value, 0 to 8, on a span from low to high; 4 where the span is a point."""
    low, high = span
    if high - low < _POINT:
        return _MIDDLE
    # Counted from the middle, so that a value and its negative have the same distance from it.
    away = (value - (low + high) / 2) / (high - low) * BUCKETS
    steps = min(_MIDDLE, int(abs(away) + 0.5))
    return _MIDDLE + steps if away > 0 else _MIDDLE - steps
