"""Curves in the unit square: risk over coverage, accuracy over confidence."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rag_harness.page.charts.axes import Scale, counted, linear, short
from rag_harness.page.charts.estimates import check_numbers
from rag_harness.page.charts.frame import Box, base_line, level, names, no_data, upright
from rag_harness.page.charts.legends import legend
from rag_harness.page.charts.series_marks import COLOURS, colour_at, legend_sample, line, marker
from rag_harness.page.charts.svg import SIZE, SMALL_WIDTH, Chart, document, points, tag
from rag_harness.page.charts.texts import LINE, label

_LEFT, _MARGIN = 46.0, 18.0
_MANY, _MARKS = 24, 6
_STROKE = {"fill": "none", "class_": "reference", "stroke_dasharray": "1 3"}


@dataclass(frozen=True)
class CurvePoint:
    """A position in the unit square. ``count`` is the number of values behind it, and sets the mark's size."""

    x: float
    y: float
    count: float | None = None


@dataclass(frozen=True)
class CurveLine:
    """A series of points by rising x. ``stepped`` keeps a point's height until the next.

    ``colour`` is the number of its colour and shape; None takes its position.
    """

    name: str
    points: tuple[CurvePoint, ...]
    stepped: bool = False
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Curve(Chart):
    """Curves with x and y between 0 and 1, written as per cent, and a reference line."""

    series: tuple[CurveLine, ...]
    x_label: str
    y_label: str
    reference: tuple[tuple[float, float], ...] = ()
    reference_label: str = ""

    def apart(self) -> list[Curve]:
        """Return a small chart for each series. The names of axes and reference are left out."""
        small = replace(self, reference_label="", x_label="", y_label="", width=SMALL_WIDTH)
        return [replace(small, ident=f"{self.ident}-{at}", series=(one,)) for at, one in enumerate(self.series)]


def curve(chart: Curve) -> str:
    """Return a line with marks for each series. Of many points only some have marks.

    Raises:
        ValueError: a coordinate is no number from 0 to 1, or a count is negative.
    """
    _check(chart)
    if not any(one.points for one in chart.series):
        return no_data(chart, "curve")
    told = [one.name for one in chart.series]
    head, end = legend(told, legend_sample, 30, chart.width, [one.colour for one in chart.series])
    refers, end = _reference_name(chart, end)
    axis, side = linear([0, 1], percent=True), chart.width - _LEFT - _MARGIN
    top = end + (30 if chart.y_label else 12)
    box = Box(_LEFT, top, _LEFT + side, top + side)
    to_x, to_y = axis.scale(box.left, box.right), axis.scale(box.bottom, box.top)
    frame = (head, refers, upright(axis, box), level(axis, box, chart.width), base_line(box))
    named = names(chart.x_label, chart.y_label, box, box.bottom + 40, chart.width)
    most = max((p.count or 0 for one in chart.series for p in one.points), default=0)
    drawn = [_series(one, index, to_x, to_y, most) for index, one in enumerate(chart.series)]
    desc = f"Curves of {', '.join(told)}: {chart.y_label} over {chart.x_label}."
    drawn = [_reference(chart, to_x, to_y), *drawn]
    return document(chart, box.bottom + (48 if chart.x_label else 28), *frame, named, *drawn, desc=desc, kind="curve")


def _check(chart: Curve) -> None:
    who = f"curve chart {chart.ident!r}"
    reference = CurveLine(chart.reference_label or "reference", tuple(CurvePoint(x, y) for x, y in chart.reference))
    for one in (*chart.series, reference):
        places = check_numbers(who, one.name, (number for point in one.points for number in (point.x, point.y)))
        counts = check_numbers(who, one.name, (point.count for point in one.points if point.count is not None))
        outside = [place for place in places if not 0 <= place <= 1] + [count for count in counts if count < 0]
        if outside:
            raise ValueError(
                f"{who}: series {one.name!r} has {outside[0]}; places are from 0 to 1, counts not negative."
            )


def _series(one: CurveLine, at: int, to_x: Scale, to_y: Scale, most: float) -> str:
    if not one.points:
        return ""
    index = colour_at(one.colour, at)
    places = [(to_x(point.x), to_y(point.y)) for point in one.points]
    drawn = [line(index, _steps(places) if one.stepped else places)] if len(places) > 1 else []
    for place in _marked(len(places)):
        point = one.points[place]
        size = 4.5 if point.count is None or not most else 3.5 + 5.5 * math.sqrt(point.count / most)
        told = "" if point.count is None else f", n = {counted(point.count)}"
        title = f"{one.name}: {short(point.x, percent=True)}, {short(point.y, percent=True)}{told}"
        drawn.append(marker(index, *places[place], size, title))
    return tag("g", *drawn, class_=f"series-{index % COLOURS}")


def _marked(count: int) -> list[int]:
    if count <= _MANY:
        return list(range(count))
    return [round((count - 1) * (place + 0.5) / _MARKS) for place in range(_MARKS)]


def _steps(places: list[tuple[float, float]]) -> list[tuple[float, float]]:
    corners = [places[0]]
    for x, y in places[1:]:
        corners += [(x, corners[-1][1]), (x, y)]
    return corners


def _reference(chart: Curve, to_x: Scale, to_y: Scale) -> str:
    if not chart.reference:
        return ""
    places = [(to_x(x), to_y(y)) for x, y in chart.reference]
    return tag("polyline", points=points(places), **_STROKE)


def _reference_name(chart: Curve, top: float) -> tuple[str, float]:
    """Return the reference line's name with a piece of it, and where they end."""
    if not chart.reference or not chart.reference_label:
        return "", top
    y = top + LINE / 2
    drawn = tag("polyline", points=points([(4, y), (34, y)]), **_STROKE)
    return drawn + label(40, y + SIZE * 0.35, chart.reference_label, chart.width - 44), top + LINE
