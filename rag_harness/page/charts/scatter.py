"""A scatter plot: points on two axes with their intervals, and the Pareto front."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.page.charts.axes import Axis, Scale, linear, logarithmic, wide_apart
from rag_harness.page.charts.estimates import Estimate, check_estimates
from rag_harness.page.charts.frame import Box, base_line, left_of, level, names, no_data, right_of, upright
from rag_harness.page.charts.label_placing import Area, placed
from rag_harness.page.charts.legends import legend
from rag_harness.page.charts.pareto import Better, pareto
from rag_harness.page.charts.series_marks import COLOURS, colour_at, estimate_in_words, marker, whiskers
from rag_harness.page.charts.svg import Chart, document, points, tag
from rag_harness.page.charts.texts import SMALL, label, shortened

_TALL, _ROOM, _NAMED = 240.0, 150.0, 8


@dataclass(frozen=True)
class Point:
    """A named point with intervals. ``colour`` is the number of its colour and shape; None takes its position."""

    name: str
    x: Estimate
    y: Estimate
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Scatter(Chart):
    """Points, and the better end of each axis. ``x_percent`` and ``y_percent`` write 0.5 as 50%.

    ``named`` are the only points that have a name, where some are given; they have error bars however many points there
    are. ``kinds`` are names for the numbers of colours and shapes, where these stand for kinds of points: a legend
    shows them.
    """

    points: tuple[Point, ...]
    x_label: str
    y_label: str
    better_x: Better = "low"
    better_y: Better = "high"
    x_percent: bool = False
    y_percent: bool = False
    named: tuple[str, ...] = ()
    kinds: tuple[tuple[str, int], ...] = ()


def scatter(chart: Scatter) -> str:
    """Return the points with error bars and the Pareto front as a stepped line.

    Of more than eight points only those on the front and the ``named`` have error bars, and names beside them; all have
    them as titles. The horizontal axis is logarithmic where all values are above 0 and the largest is over 50
    times the least.

    Raises:
        ValueError: a number cannot be drawn, or an interval is inverted.
    """
    who = f"scatter chart {chart.ident!r}"
    xs = [number for point in chart.points for number in check_estimates(who, point.name, [point.x])]
    ys = [number for point in chart.points for number in check_estimates(who, point.name, [point.y])]
    if not xs:
        return no_data(chart, "scatter")
    across = logarithmic(xs) if wide_apart(xs) else linear(xs, count=4, percent=chart.x_percent)
    up = linear(ys, percent=chart.y_percent)
    head, end = legend([name for name, _ in chart.kinds], _sample, 14, chart.width, [kind for _, kind in chart.kinds])
    top = end + 26 if chart.kinds else 30.0
    box = Box(left_of(up), top, right_of(chart) - 8, top + _TALL)
    to_x, to_y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    front = pareto(chart.points, chart.better_x, chart.better_y)
    x_label = f"{chart.x_label} ({_ends(chart.better_x, across)})"
    y_label = f"{chart.y_label} ({chart.better_y}er is better)"
    frame = (
        head,
        upright(up, box),
        level(across, box, chart.width),
        base_line(box),
        names(x_label, y_label, box, box.bottom + 40, chart.width),
    )
    told = [each for each in chart.points if len(chart.points) <= _NAMED or each in front or each.name in chart.named]
    by_name = [each for each in told if each.name in chart.named] if chart.named else told
    drawn = (
        _front(front, chart, to_x, to_y, box),
        *_marks(chart, told, to_x, to_y),
        _named(by_name, told, to_x, to_y, box),
    )
    best = ", ".join(point.name for point in front)
    desc = f"{len(chart.points)} points; beaten by no other: {best}. Thin lines are intervals."
    return document(chart, box.bottom + 48, *frame, *drawn, desc=desc, kind="scatter")


def _sample(index: int, x: float, y: float) -> str:
    """Return a kind's mark, 14 units wide, for the legend."""
    return marker(index, x + 7, y)


def _ends(better: Better, axis: Axis) -> str:
    return f"{better}er is better{', logarithmic' if axis.log else ''}"


def _front(front: list[Point], chart: Scatter, to_x: Scale, to_y: Scale, box: Box) -> str:
    """Return the border of the dominated area, from the front's ends straight to the worse edges of the plot."""
    corners: list[tuple[float, float]] = []
    ordered = front if chart.better_x == "low" else front[::-1]
    for point in ordered:
        x, y = to_x(point.x.value), to_y(point.y.value)
        corners += [(x, corners[-1][1] if corners else box.bottom if chart.better_y == "high" else box.top), (x, y)]
    corners.append((box.right if chart.better_x == "low" else box.left, corners[-1][1]))
    return tag("polyline", points=points(corners), fill="none", class_="front", stroke_dasharray="5 4")


def _marks(chart: Scatter, told: list[Point], to_x: Scale, to_y: Scale) -> list[str]:
    drawn = []
    for at, point in enumerate(chart.points):
        index = colour_at(point.colour, at)
        x, y, kind = to_x(point.x.value), to_y(point.y.value), f"stroke-{index % COLOURS}"
        left, right = (to_x(point.x.value if end is None else end) for end in (point.x.low, point.x.high))
        low, high = (to_y(point.y.value if end is None else end) for end in (point.y.low, point.y.high))
        bars = whiskers((left, right), y, kind, upright=False) if left != right else ""
        bars += whiskers((low, high), x, kind) if low != high else ""
        bars = bars if point in told else ""
        x_said, y_said = (
            estimate_in_words(point.x, percent=chart.x_percent),
            estimate_in_words(point.y, percent=chart.y_percent),
        )
        title = f"{point.name}: {chart.x_label} {x_said}, {chart.y_label} {y_said}"
        drawn.append(tag("g", bars, marker(index, x, y, 5.5, title), class_=f"series-{index % COLOURS}"))
    return drawn


def _taken(told: list[Point], to_x: Scale, to_y: Scale) -> list[Area]:
    """Return the areas of the error bars."""
    areas = []
    for point in told:
        xs, ys = [to_x(end) for end in point.x.numbers()], [to_y(end) for end in point.y.numbers()]
        areas.append(Area(min(xs), to_y(point.y.value) - 2, max(xs), to_y(point.y.value) + 2))
        areas.append(Area(to_x(point.x.value) - 2, min(ys), to_x(point.x.value) + 2, max(ys)))
    return areas


def _named(named: list[Point], told: list[Point], to_x: Scale, to_y: Scale, box: Box) -> str:
    texts = [shortened(point.name, _ROOM, SMALL) for point in named]
    places = [(to_x(point.x.value), to_y(point.y.value)) for point in named]
    areas = placed(texts, places, Area(box.left + 2, box.top + 1, box.right, box.bottom - 2), _taken(told, to_x, to_y))
    return "".join(
        label(area.left, area.bottom - 3, point.name, _ROOM, size=SMALL, kind="label halo-text")
        for point, area in zip(named, areas, strict=True)
    )
