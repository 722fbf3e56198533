"""Axes: round ticks, scales from numbers to positions, and the format of numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
# Smaller numbers count as 0: their powers of ten would leave the range of a float.
_NOTHING = 1e-100


@dataclass(frozen=True)
class Scale:
    """Maps numbers from ``low`` to ``high`` to positions from ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, place = (math.log10(n) if self.log else n for n in (self.low, self.high, value))
        return self.start + (place - low) / (high - low) * (self.end - self.start)


@dataclass(frozen=True)
class Axis:
    """The range of an axis, with its ticks and their format."""

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...]
    log: bool = False

    def scale(self, start: float, end: float) -> Scale:
        """Return the scale that maps this axis to the range between two positions."""
        return Scale(self.low, self.high, start, end, self.log)


def linear(values: Iterable[float], *, count: int = 5, percent: bool = False) -> Axis:
    """Return an axis that contains all values and ends at ticks; 0 to 1 where there is no value."""
    low, high = _span(list(values))
    step = _step((high - low) / count)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(place * step for place in range(first, last + 1))
    return Axis(ticks[0], ticks[-1], ticks, tuple(_written(tick, step, percent, ticks) for tick in ticks))


def logarithmic(values: Iterable[float]) -> Axis:
    """Return an axis of powers of ten, with 2 and 5 between them where there would be few ticks.

    Raises:
        ValueError: there is no value, or one is not above 0.
    """
    found = list(values)
    if not found or min(found) <= 0:
        raise ValueError("a logarithmic axis needs values above 0.")
    decades = range(math.floor(math.log10(min(found))) - 1, math.ceil(math.log10(max(found))) + 2)
    marks = [factor * 10.0**decade for decade in decades for factor in (1, 2, 5)]
    low = max(mark for mark in marks if mark <= min(found))
    high = min(mark for mark in marks if mark >= max(found) and mark > low)
    ticks = [mark for mark in marks if low <= mark <= high]
    if len(ticks) > 7:
        ticks = [tick for tick in (10.0**decade for decade in decades) if low <= tick <= high]
        ticks = ticks[:: math.ceil(len(ticks) / 7)]
    return Axis(low, high, tuple(ticks), tuple(_power(tick) for tick in ticks), log=True)


def wide_apart(values: Iterable[float]) -> bool:
    """Return whether a logarithmic axis suits the values: all are above 0, the largest is over 50 times the least."""
    found = list(values)
    return bool(found) and min(found) > _NOTHING and max(found) > 50 * min(found)


def short(value: float, *, percent: bool = False, among: float | None = None) -> str:
    """Return a number for a label: three significant digits, two decimals for a share; as many as ``among`` gets."""
    if percent and abs(value) >= 100:
        return f"{short(100 * value)}%"
    if percent:
        return _signed(f"{100 * value:.0f}%" if abs(value) >= 0.0995 or not value else f"{100 * value:.1f}%")
    size = abs(value if among is None else among)
    if size and (size < 1e-4 or size >= 1e7):
        return _power(float(f"{value:.2g}"))
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2
    return _signed(f"{value:,.{decimals}f}" if size >= 0.0095 or not size else f"{value:.2g}")


def counted(value: float) -> str:
    """Return a count: without decimals unless it has some."""
    return _signed(f"{value:,.0f}" if value == round(value) else f"{value:,.2f}")


def _span(values: list[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 1.0
    low, high = min(values), max(values)
    size = max(abs(low), abs(high))
    if high - low > max(1e-9 * size, 1e-12):
        return low, high
    # All values are equal: leave room on both sides, so that the mark is not on the edge.
    return (low - 0.1 * size, high + 0.1 * size) if size > 1e-11 else (0.0, 1.0)


def _step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in _STEPS if step * power >= least * (1 - 1e-9))


def _written(tick: float, step: float, percent: bool, ticks: tuple[float, ...]) -> str:
    tick, step, unit = (100 * tick, 100 * step, "%") if percent else (tick, step, "")
    if step < 1e-4 or step >= 1e6:
        # As many digits as needed to tell ticks apart.
        digits = 3 + math.ceil(math.log10(max(abs(ticks[0]), abs(ticks[-1])) * (100 if percent else 1) / step))
        return _signed(f"{tick:.{min(15, digits)}g}{unit}") if tick else f"0{unit}"
    decimals = next(n for n in range(8) if n == 7 or abs(step * 10**n - round(step * 10**n)) < 1e-6 * step * 10**n)
    return _signed(f"{tick:,.{decimals}f}{unit}")


def _power(value: float) -> str:
    if value and not 1e-4 <= abs(value) < 1e6:
        return _signed(f"{value:g}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e"))
    return _signed(f"{value:,.10g}")


def _signed(text: str) -> str:
    if text.startswith("-") and not text.strip("-0.,%"):
        return text[1:]
    return text.replace("-", "−")
