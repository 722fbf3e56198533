"""Finds the Pareto front: the points that no other dominates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol, TypeVar

from rag_harness.page.charts.estimates import Estimate

Better = Literal["low", "high"]


class OnTwoAxes(Protocol):
    """An object with a value on each of two axes."""

    @property
    def x(self) -> Estimate: ...

    @property
    def y(self) -> Estimate: ...


_P = TypeVar("_P", bound=OnTwoAxes)


def pareto(points: Sequence[_P], better_x: Better, better_y: Better) -> list[_P]:
    """Return the points that no other dominates, by rising x.

    A point dominates another where it is as good on both axes and better on one. Equal points do not dominate each
    other.
    """
    sign_x, sign_y = (1 if better == "low" else -1 for better in (better_x, better_y))
    ordered = sorted(points, key=lambda point: (sign_x * point.x.value, sign_y * point.y.value))
    kept: list[_P] = []
    for point in ordered:
        if not kept or sign_y * point.y.value < sign_y * kept[-1].y.value or _same(point, kept[-1]):
            kept.append(point)
    return kept if better_x == "low" else kept[::-1]


def _same(one: OnTwoAxes, other: OnTwoAxes) -> bool:
    return (one.x.value, one.y.value) == (other.x.value, other.y.value)
