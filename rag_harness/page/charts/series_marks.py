"""Marks of series. They differ by shape and dashes as well as by colour."""

from __future__ import annotations

import math

from rag_harness.page.charts.axes import short
from rag_harness.page.charts.estimates import Estimate
from rag_harness.page.charts.svg import escaped, points, tag

COLOURS = 8

_DASHES = (None, "7 3", "2 3", "9 3 2 3", "4 2", "12 4", "6 2 2 2 2 2", "1 2")


def _regular(corners: int, turn: float = -90.0) -> list[tuple[float, float]]:
    angles = [math.radians(turn + 360 * corner / corners) for corner in range(corners)]
    return [(1.15 * math.cos(angle), 1.15 * math.sin(angle)) for angle in angles]


_PLUS = [(-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)]
_PLUS += [(-x, -y) for x, y in _PLUS]
_CROSS = [((x - y) * math.sqrt(0.5), (x + y) * math.sqrt(0.5)) for x, y in _PLUS]
_SQUARE = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]
_DIAMOND = [(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]
# The first mark is a circle, which has no corners.
_SHAPES: tuple[list[tuple[float, float]], ...] = (
    [],
    _SQUARE,
    _regular(3),
    _DIAMOND,
    _regular(3, 90),
    _CROSS,
    _regular(5),
    _PLUS,
)


def colour_at(colour: int | None, place: int) -> int:
    """Return the number of a series' colour and shape: its own, or its position in the chart."""
    return place if colour is None else colour


def dash(index: int) -> str | None:
    """Return the dash pattern of a series' line. It differs from that of the series with the same colour."""
    return _DASHES[(index + index // COLOURS) % len(_DASHES)]


def marker(index: int, x: float, y: float, size: float = 4.5, title: str = "") -> str:
    """Return a series' mark at a position. Every second group of eight has hollow marks."""
    colour = index % COLOURS
    hollow = index // COLOURS % 2 == 1
    kind = f"plate stroke-{colour}" if hollow else f"fill-{colour} edge"
    inside = [tag("title", escaped(title))] if title else []
    shape = _SHAPES[colour]
    if not shape:
        return tag("circle", *inside, cx=x, cy=y, r=size, class_=kind)
    corners = points([(x + size * dx, y + size * dy) for dx, dy in shape])
    return tag("polygon", *inside, points=corners, class_=kind)


def line(index: int, places: list[tuple[float, float]]) -> str:
    """Return a series' line through positions."""
    return tag(
        "polyline",
        points=points(places),
        class_=f"line stroke-{index % COLOURS}",
        fill="none",
        stroke_width=2,
        stroke_dasharray=dash(index),
    )


def legend_sample(index: int, x: float, y: float) -> str:
    """Return a piece of a series' line with its mark, 30 units wide, for a legend."""
    return line(index, [(x, y), (x + 30, y)]) + marker(index, x + 15, y)


def whiskers(ends: tuple[float, float], across: float, kind: str, *, upright: bool = True, cap: float = 3.0) -> str:
    """Return an error bar between two positions, with caps on both sides, at the position ``across``."""
    low, high = ends
    strokes = [(across, low, across, high)] + [(across - cap, end, across + cap, end) for end in ends]
    if not upright:
        strokes = [(y1, x1, y2, x2) for x1, y1, x2, y2 in strokes]
    drawn = (tag("line", x1=x1, y1=y1, x2=x2, y2=y2) for x1, y1, x2, y2 in strokes)
    return tag("g", *drawn, class_=f"whiskers {kind}", stroke_width=1.2)


def estimate_in_words(value: Estimate, *, percent: bool = False) -> str:
    """Return a value with its interval as text for tooltips."""
    if value.low is None and value.high is None:
        return short(value.value, percent=percent)
    low, high = ("?" if end is None else short(end, percent=percent) for end in (value.low, value.high))
    return f"{short(value.value, percent=percent)} [{low}, {high}]"
