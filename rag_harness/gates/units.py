"""Formats numbers for people, by the unit of the measure."""

from __future__ import annotations

from math import isinf

_DIGITS = {"ms": 0, "usd": 4, "tokens": 0, "count": 1}
"""Least number of decimals, by unit; a share or a score has 3."""
_UNITS = {"ms": " ms", "tokens": " tokens"}
_MOST_DIGITS = 13


def value_with_unit(value: float, unit: str, digits: int) -> str:
    """Write a value with its unit."""
    sign = "-" if value < 0 and unit == "usd" else ""
    number = f"{abs(value) if sign else value:.{digits}f}"
    return f"{sign}${number}" if unit == "usd" else f"{number}{_UNITS.get(unit, '')}"


def share_said(share: float, interval: tuple[float, float] | None = None) -> str:
    """Write a share as a percentage, with its interval: ``8.0 % [5.0, 13.0]``."""
    between = f" [{100 * interval[0]:.1f}, {100 * interval[1]:.1f}]" if interval else ""
    return f"{100 * share:.1f} %{between}"


def told_apart(value: float, threshold: float, unit: str, same: bool) -> tuple[str, str]:
    """Write both numbers with enough digits to show that they differ, so that no line says 0.950 failed >= 0.95."""
    fewest = _DIGITS.get(unit, 3)
    for digits in range(fewest, _MOST_DIGITS):
        pair = value_with_unit(value, unit, digits), value_with_unit(threshold, unit, digits)
        if pair[0] != pair[1] or same:
            return pair
    return value_with_unit(value, unit, fewest), value_with_unit(threshold, unit, fewest)


def value_said(value: float, unit: str = "share") -> str:
    """Write a value with its unit, and with the unit's number of digits."""
    return value_with_unit(value, unit, _DIGITS.get(unit, 3))


def bounds(low: float, high: float, unit: str, signed: bool = False, digits: int = 2) -> str:
    """Write an interval in the unit of its value. An end is open where there are too few cases to bound it.

    ``digits`` is for a share or a score; other units have their own number of digits.
    """
    digits = _DIGITS.get(unit, digits)
    sign = "+" if signed else ""
    ends = ["…" if isinf(end) else f"{end:{sign}.{digits}f}" for end in (low, high)]
    return f"[{ends[0]}, {ends[1]}]"
