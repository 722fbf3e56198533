"""The input of charts, and the checks that it can be drawn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_LARGEST = 1e15


@dataclass(frozen=True)
class Estimate:
    """A value and the ends of its interval. An unknown end is None."""

    value: float
    low: float | None = None
    high: float | None = None

    def numbers(self) -> Iterator[float]:
        """Yield the value and the known ends."""
        yield from (number for number in (self.value, self.low, self.high) if number is not None)


@dataclass(frozen=True)
class Series:
    """A name and a value for each category; None is a missing value.

    ``colour`` is the number of its colour and shape, the same in every chart; None takes its position.
    """

    name: str
    values: tuple[Estimate | None, ...]
    colour: int | None = None


def check_series(chart: str, categories: tuple[str, ...], series: Iterable[Series]) -> list[float]:
    """Return all numbers of the series.

    Raises:
        ValueError: a series and the categories differ in number, or a number cannot be drawn.
    """
    found: list[float] = []
    for one in series:
        if len(one.values) != len(categories):
            raise ValueError(
                f"{chart}: series {one.name!r} has {len(one.values)} values for {len(categories)} categories. "
                "Give None for what was not measured."
            )
        found += check_estimates(chart, one.name, (value for value in one.values if value is not None))
    return found


def check_estimates(chart: str, name: str, values: Iterable[Estimate]) -> list[float]:
    """Return the numbers of the estimates. Raise ``ValueError`` for an inverted interval or an impossible number."""
    found: list[float] = []
    for value in values:
        if value.low is not None and value.high is not None and value.low > value.high:
            raise ValueError(
                f"{chart}: series {name!r} has an interval from {value.low} to {value.high}; swap its ends."
            )
        found += value.numbers()
    return check_numbers(chart, name, found)


def check_numbers(chart: str, name: str, values: Iterable[float]) -> list[float]:
    """Return the numbers unchanged. Raise ``ValueError`` for NaN, infinity, and numbers beyond 1e15."""
    found = list(values)
    for value in found:
        if not math.isfinite(value) or abs(value) > _LARGEST:
            raise ValueError(
                f"{chart}: series {name!r} has the value {value}, which cannot be drawn. "
                "Give finite numbers, and None or nothing for what was not measured."
            )
    return found


def check_shares(chart: str, name: str, values: Iterable[float]) -> list[float]:
    """Return the counts unchanged. Raise ``ValueError`` where one is negative or no number."""
    found = check_numbers(chart, name, values)
    if any(value < 0 for value in found):
        raise ValueError(f"{chart}: series {name!r} has the value {min(found)}; a share of a whole is not negative.")
    return found
