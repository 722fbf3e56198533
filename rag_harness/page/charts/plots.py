"""Plots on two axes: curves, lines over categories, staircases, and scatter plots with the Pareto front."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeVar

from rag_harness.page.charts.frame import (
    COLOURS,
    Axis,
    Box,
    Estimate,
    Scale,
    Series,
    base_line,
    categories,
    check_estimates,
    check_numbers,
    check_series,
    colour_at,
    counted,
    estimate_in_words,
    left_of,
    legend,
    legend_sample,
    level,
    line,
    linear,
    logarithmic,
    marker,
    names,
    no_data,
    right_of,
    short,
    upright,
    whiskers,
    wide_apart,
)
from rag_harness.page.charts.svg import (
    CHART_WIDTH,
    LINE,
    SIZE,
    SMALL,
    SMALL_WIDTH,
    Chart,
    document,
    label,
    points,
    shortened,
    tag,
    text_width,
)

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
        ValueError: a coordinate is not a number from 0 to 1, or a count is negative.
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


_TALL = 190.0
_APART = 7.0


@dataclass(frozen=True, kw_only=True)
class Lines(Chart):
    """Series over ordered categories. ``percent`` writes 0.5 as 50%. The axis contains ``include`` too."""

    categories: tuple[str, ...]
    series: tuple[Series, ...]
    y_label: str = ""
    percent: bool = False
    include: tuple[float, ...] = ()

    def apart(self) -> list[Lines]:
        """Return a small chart for each series, all on the same axis."""
        found = [n for one in self.series for value in one.values if value is not None for n in value.numbers()]
        ends = (min(found), max(found)) if found else ()
        small = replace(self, include=(*self.include, *ends), width=SMALL_WIDTH)
        return [replace(small, ident=f"{self.ident}-{at}", series=(one,)) for at, one in enumerate(self.series)]


def lines(chart: Lines) -> str:
    """Return a line for each series, with a mark and an error bar for each value. None is a gap.

    Raises:
        ValueError: a series and the categories differ in number, or a number cannot be drawn.
    """
    values = check_series(f"lines chart {chart.ident!r}", chart.categories, chart.series)
    if not values:
        return no_data(chart, "lines")
    colours = [one.colour for one in chart.series]
    head, end = legend([one.name for one in chart.series], legend_sample, 30, chart.width, colours)
    axis = linear([*values, *chart.include], percent=chart.percent)
    top = end + (30 if chart.y_label else 10)
    box = Box(left_of(axis), top, right_of(chart), top + _TALL * chart.width / CHART_WIDTH)
    band = (box.right - box.left) / len(chart.categories)
    middles = [box.left + band * (place + 0.5) for place in range(len(chart.categories))]
    below, height = categories(chart.categories, middles, band, box.bottom)
    place = axis.scale(box.bottom, box.top)
    drawn = [_series_marks(chart, index, middles, band, place) for index in range(len(chart.series))]
    frame = (head, upright(axis, box), base_line(box), below, names("", chart.y_label, box, 0, chart.width))
    return document(chart, height + 4, *frame, *drawn, desc=_desc(chart), kind="lines")


def _series_marks(chart: Lines, at: int, middles: list[float], band: float, place: Scale) -> str:
    apart = min(_APART, 0.6 * band / len(chart.series))
    shift = (at - (len(chart.series) - 1) / 2) * apart
    series, bars, marks = chart.series[at], [], []
    index = colour_at(series.colour, at)
    runs: list[list[tuple[float, float]]] = [[]]
    for category, middle, value in zip(chart.categories, middles, series.values, strict=True):
        if value is None:
            runs.append([])
            continue
        x, y = middle + shift, place(value.value)
        runs[-1].append((x, y))
        bars.append(_bar(value, x, place, index))
        title = f"{series.name}, {category}: {estimate_in_words(value, percent=chart.percent)}"
        marks.append(marker(index, x, y, title=title))
    joined = [line(index, run) for run in runs if len(run) > 1]
    return tag("g", *joined, *bars, *marks, class_=f"series-{index % COLOURS}")


def _bar(value: Estimate, x: float, place: Scale, index: int) -> str:
    if value.low is None and value.high is None:
        return ""
    low, high = (place(value.value if end is None else end) for end in (value.low, value.high))
    return whiskers((low, high), x, f"stroke-{index % COLOURS}")


def _desc(chart: Lines) -> str:
    told = ", ".join(one.name for one in chart.series)
    return f"{len(chart.series)} lines ({told}) over {', '.join(chart.categories)}; bars are intervals."


_STAIRCASE_HEIGHT = 150.0


@dataclass(frozen=True, kw_only=True)
class Staircase(Chart):
    """Places ``(x, count)`` by rising x. A count holds until the next place."""

    steps: tuple[tuple[float, float], ...]
    x_label: str
    y_label: str


def staircase(chart: Staircase) -> str:
    """Return the line, with a mark where the count changes and at both ends.

    Raises:
        ValueError: a number cannot be drawn.
    """
    if not chart.steps:
        return no_data(chart, "staircase")
    check_numbers(f"staircase chart {chart.ident!r}", chart.y_label, (each for step in chart.steps for each in step))
    across = linear([0, *(x for x, _ in chart.steps)], count=4)
    up = linear([0, *(y for _, y in chart.steps)], count=4)
    box = Box(left_of(up), 30.0, right_of(chart) - 8, 30.0 + _STAIRCASE_HEIGHT)
    to_x, to_y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    frame = (
        upright(up, box),
        level(across, box, chart.width),
        base_line(box),
        names(chart.x_label, chart.y_label, box, box.bottom + 40, chart.width),
    )
    drawn = tag("g", line(0, list(_corners(chart, to_x, to_y))), *_marks(chart, to_x, to_y), class_="series-0")
    (_, first), (end, last) = chart.steps[0], chart.steps[-1]
    desc = f"{chart.y_label}: {counted(first)} at first, {counted(last)} at {counted(end)} {chart.x_label}."
    return document(chart, box.bottom + 48, *frame, drawn, desc=desc, kind="staircase")


def _corners(chart: Staircase, to_x: Scale, to_y: Scale) -> Iterator[tuple[float, float]]:
    known = chart.steps[0][1]
    for x, y in chart.steps:
        yield to_x(x), to_y(known)
        yield to_x(x), to_y(y)
        known = y


def _marks(chart: Staircase, to_x: Scale, to_y: Scale) -> Iterator[str]:
    last = len(chart.steps) - 1
    for at, (x, y) in enumerate(chart.steps):
        if at in (0, last) or y != chart.steps[at - 1][1]:
            title = f"{chart.x_label} {counted(x)}: {chart.y_label} {counted(y)}"
            yield marker(0, to_x(x), to_y(y), title=title)


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


_NEAR = 9.0


@dataclass(frozen=True)
class Area:
    """A rectangle."""

    left: float
    top: float
    right: float
    bottom: float

    def common(self, other: Area) -> float:
        """Return the area that both share, in square units."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)


def placed(names: Sequence[str], places: Sequence[tuple[float, float]], within: Area, taken: list[Area]) -> list[Area]:
    """Return an area for each name beside its point. Taken areas and points are avoided where possible."""
    taken = taken + [Area(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    found = []
    for name, (x, y) in zip(names, places, strict=True):
        wide = text_width(name, SMALL)
        choices = [_kept_in(area, within) for area in _around(x, y, wide)]
        best = min(choices, key=lambda area: sum(area.common(other) for other in taken))
        taken.append(best)
        found.append(best)
    return found


def _around(x: float, y: float, wide: float) -> Iterator[Area]:
    tall = SMALL + 2
    # Names are beside error bars, not on them; farther out only where nearer positions are taken.
    for far in (_NEAR, 2.5 * _NEAR, 4 * _NEAR):
        for up in (y - far - tall + 4, y + far - 4):
            yield Area(x + 6, up, x + 6 + wide, up + tall)
            yield Area(x - 6 - wide, up, x - 6, up + tall)


def _kept_in(area: Area, within: Area) -> Area:
    across = max(0.0, within.left - area.left) - max(0.0, area.right - within.right)
    down = max(0.0, within.top - area.top) - max(0.0, area.bottom - within.bottom)
    return Area(area.left + across, area.top + down, area.right + across, area.bottom + down)


_SCATTER_HEIGHT, _ROOM, _NAMED = 240.0, 150.0, 8


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
    are. ``kinds`` names the kinds of points where colours and shapes mean kinds: a legend shows them.
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
    box = Box(left_of(up), top, right_of(chart) - 8, top + _SCATTER_HEIGHT)
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
        *_point_marks(chart, told, to_x, to_y),
        _named(by_name, told, to_x, to_y, box),
    )
    best = ", ".join(point.name for point in front)
    desc = f"{len(chart.points)} points; beaten by no other: {best}. Thin lines are intervals."
    return document(chart, box.bottom + 48, *frame, *drawn, desc=desc, kind="scatter")


def _sample(index: int, x: float, y: float) -> str:
    """Return the legend's mark of a kind, 14 units wide."""
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


def _point_marks(chart: Scatter, told: list[Point], to_x: Scale, to_y: Scale) -> list[str]:
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
