"""Histograms and heat maps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from rag_harness.page.charts.frame import (
    Axis,
    Box,
    base_line,
    check_numbers,
    colour_at,
    filled,
    fills,
    level,
    level_names,
    linear,
    names,
    no_data,
    short,
)
from rag_harness.page.charts.svg import (
    LINE,
    SMALL,
    SMALL_WIDTH,
    Chart,
    document,
    escaped,
    label,
    tag,
    text_width,
    turned,
)

_TALL, _HEAD, _BETWEEN = 46.0, 36.0, 10.0
_EDGE = 10.0


@dataclass(frozen=True)
class Distribution:
    """A series and its values, one for each trial. ``colour`` is the number of its colour; None takes its position."""

    name: str
    values: tuple[float, ...]
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Histogram(Chart):
    """Distributions of one quantity. The axis contains ``include`` too, e.g. (0, 1).

    ``most`` is the share of the values in a bin that is as tall as the plot, for charts that are compared; 0 takes the
    largest of this chart.
    """

    series: tuple[Distribution, ...]
    x_label: str = ""
    bins: int = 20
    percent: bool = False
    include: tuple[float, ...] = ()
    most: float = 0.0

    def apart(self) -> list[Histogram]:
        """Return a small chart for each series, all on the same axes, whose name is left out."""
        values = [value for one in self.series for value in one.values]
        if not values:
            return []
        shared = replace(self, x_label="", include=(*self.include, min(values), max(values)))
        axis = _axis(shared)
        most = max(max(_counts(one, axis, self.bins)) for one in self.series)
        return [
            replace(shared, ident=f"{self.ident}-{at}", series=(one,), most=most, width=SMALL_WIDTH)
            for at, one in enumerate(self.series)
        ]


def histogram(chart: Histogram) -> str:
    """Return a small histogram for each series. All have the same axis and the same height for the same share.

    The 95th percentile is the value that 95 % of the values do not exceed (nearest rank).

    Raises:
        ValueError: a number cannot be drawn.
    """
    who = f"histogram chart {chart.ident!r}"
    values = [value for one in chart.series for value in check_numbers(who, one.name, one.values)]
    if not values:
        return no_data(chart, "histogram")
    axis = _axis(chart)
    counts = [_counts(one, axis, chart.bins) for one in chart.series]
    most = chart.most or max(max(row) for row in counts)
    tops = [_HEAD + (_HEAD + _TALL + _BETWEEN) * place for place in range(len(chart.series))]
    boxes = [Box(_EDGE, top, chart.width - _EDGE, top + _TALL) for top in tops]
    drawn = [_small(chart, index, axis, boxes[index], [n / most for n in row]) for index, row in enumerate(counts)]
    foot = boxes[-1]
    last = foot.bottom + (42 if chart.x_label else 26)
    grids = [level(axis, box, chart.width) if box is foot else _grid(axis, box) for box in boxes]
    frame = (*grids, names(chart.x_label, "", foot, last - 4, chart.width))
    patterns = fills(chart.ident, (colour_at(one.colour, place) for place, one in enumerate(chart.series)))
    desc = (
        f"Histograms of {', '.join(one.name for one in chart.series)}; solid line the mean, dashed the 95th percentile."
    )
    return document(chart, last, patterns, *frame, *drawn, desc=desc, kind="histogram")


def _axis(chart: Histogram) -> Axis:
    values = [value for one in chart.series for value in one.values]
    return linear([*values, *chart.include], count=4, percent=chart.percent)


def _grid(axis: Axis, box: Box) -> str:
    place = axis.scale(box.left, box.right)
    return "".join(
        tag("line", x1=place(tick), x2=place(tick), y1=box.top, y2=box.bottom, class_="grid") for tick in axis.ticks
    )


def _many(one: Distribution) -> str:
    return f"n = {len(one.values):,}"


def _counts(one: Distribution, axis: Axis, bins: int) -> list[float]:
    """Return the share of values in each bin. The last bin contains its upper end."""
    counts = [0] * bins
    for value in one.values:
        counts[min(bins - 1, int((value - axis.low) / (axis.high - axis.low) * bins))] += 1
    return [count / max(1, len(one.values)) for count in counts]


def _small(chart: Histogram, index: int, axis: Axis, box: Box, heights: list[float]) -> str:
    one = chart.series[index]
    wide = (box.right - box.left) / len(heights)
    drawn = []
    for place, height in enumerate(heights):
        if height:
            x, tall = box.left + wide * place, _TALL * height
            fill = filled(chart.ident, colour_at(one.colour, index))
            drawn.append(tag("rect", x=x + 0.5, y=box.bottom - tall, width=wide - 1, height=tall, **fill))
    y, many = box.top - 22, _many(one)
    name = label(box.left, y, one.name, box.right - box.left - text_width(many, SMALL) - 8)
    behind = label(box.right, y, many, anchor="end", size=SMALL, kind="axis-label")
    title = tag("title", escaped(f"{one.name}: {len(one.values)} values"))
    return tag("g", title, *drawn, base_line(box), name, behind, _marked(chart, one, axis, box))


def _marked(chart: Histogram, one: Distribution, axis: Axis, box: Box) -> str:
    if not one.values:
        return label(box.left + 6, box.bottom - 8, "no data", size=SMALL, kind="label mute")
    ordered = sorted(one.values)
    mean = math.fsum(ordered) / len(ordered)
    p95 = ordered[max(1, math.ceil(round(0.95 * len(ordered), 9))) - 1]
    place = axis.scale(box.left, box.right)
    drawn, texts = [], []
    for value, name, dashes in ((mean, "mean", None), (p95, "p95", "3 2")):
        x = place(min(max(value, ordered[0]), ordered[-1]))
        stroke = {"x1": x, "x2": x, "y1": box.top - 4, "y2": box.bottom}
        drawn += [
            tag("line", **stroke, class_="halo-line"),
            tag("line", **stroke, class_="ink", stroke_dasharray=dashes),
        ]
        texts.append((x, f"{name} {short(value, percent=chart.percent)}"))
    return "".join(drawn) + _beside(texts, box)


def _beside(texts: list[tuple[float, str]], box: Box) -> str:
    """Return both names above their lines within the plot: the lower value's to the left, the other to the right."""
    (low, *_), (high, *_) = ordered = sorted(texts)
    wide = [text_width(text, SMALL) for _, text in ordered]
    first = min(max(low + 2, box.left + wide[0]), box.right - wide[1] - 8)
    second = max(min(high - 2, box.right - wide[1]), first + 8)
    kind, y = "label halo-text", box.top - 7
    before = label(first, y, ordered[0][1], anchor="end", size=SMALL, kind=kind)
    return before + label(second, y, ordered[1][1], size=SMALL, kind=kind)


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


_HEAT_MAP_ROW, _WIDEST, _NARROWEST, _LONGEST, _LONGEST_ROW, _HEAT_MAP_GAP = 22.0, 60.0, 24.0, 110.0, 120.0, 18.0


@dataclass(frozen=True, kw_only=True)
class HeatMap(Chart):
    """``values`` has a tuple for each row, with a value or None for each column. Diverging colours are divided at 0.

    ``groups`` has a heading for each row, written above the first row of several that share it; "" is none.
    ``span`` has the ends of the colour scale, for maps that are compared; None takes the range of the values.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]
    colours: Literal["sequential", "diverging"] = "sequential"
    percent: bool = False
    span: tuple[float, float] | None = None
    groups: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Grid:
    chart: HeatMap
    left: float
    cell: float
    span: tuple[float, float]


def heat_map(chart: HeatMap) -> str:
    """Return the table with every value in its cell, in as many blocks of columns as keep it readable.

    Raises:
        ValueError: the values are not of the shape rows by columns, or a number cannot be drawn.
    """
    found = _checked(chart)
    if not found:
        return no_data(chart, "heat-map")
    left = min(_LONGEST_ROW, max(text_width(name) for name in chart.rows)) + 14
    span = _span([*found, *(chart.span or ())], chart.colours)
    least = max(text_width(_written(chart, value, span), SMALL) for value in found) + 5
    blocks = math.ceil(len(chart.columns) / max(1, int((chart.width - 6 - left) / max(_NARROWEST, least))))
    per_block = math.ceil(len(chart.columns) / blocks)
    cell = min(_WIDEST, (chart.width - 6 - left) / per_block)
    grid = _Grid(chart, left, cell, span)
    drawn, top = [], 6.0
    for first in range(0, len(chart.columns), per_block):
        block, bottom = _block(grid, range(first, min(first + per_block, len(chart.columns))), top)
        drawn.append(block)
        top = bottom + _HEAT_MAP_GAP
    desc = f"Values of {', '.join(chart.rows)} by {', '.join(chart.columns)}; darker or stronger is farther out."
    kind = f"heat-map {chart.colours}"
    return document(chart, top + 24, *drawn, _key(grid, top), desc=desc, kind=kind)


def _checked(chart: HeatMap) -> list[float]:
    who = f"heat map chart {chart.ident!r}"
    if len(chart.values) != len(chart.rows) or any(len(row) != len(chart.columns) for row in chart.values):
        shape = [len(row) for row in chart.values]
        raise ValueError(f"{who}: rows of {shape} values for {len(chart.rows)} rows, {len(chart.columns)} columns.")
    return [
        value
        for name, row in zip(chart.rows, chart.values, strict=True)
        for value in check_numbers(who, name, (value for value in row if value is not None))
    ]


def _span(found: list[float], colours: str) -> tuple[float, float]:
    if colours == "sequential":
        return min(found), max(found)
    largest = max(abs(value) for value in found)
    return -largest, largest


def _written(chart: HeatMap, value: float, span: tuple[float, float]) -> str:
    """Return a value as its cell says it: a share without its leading 0, for cells are narrow."""
    if not chart.percent and min(span) >= -1 and max(span) <= 1:
        text = short(value, among=1.0)
        return text.replace("0.", ".", 1) if round(abs(value), 2) < 1 else text[:-1]
    return short(value, percent=chart.percent, among=max(map(abs, span)))


def _block(grid: _Grid, columns: range, top: float) -> tuple[str, float]:
    names = [grid.chart.columns[column] for column in columns]
    middles = [grid.left + grid.cell * (place + 0.5) for place in range(len(columns))]
    head, start = _head(names, middles, grid.cell, top)
    drawn = [head]
    y, above = start, ""
    for place, name in enumerate(grid.chart.rows):
        group = grid.chart.groups[place] if grid.chart.groups else ""
        if group and group != above:
            drawn.append(label(4, y + _HEAT_MAP_ROW - 6, group, grid.chart.width - 8, size=SMALL, kind="label mute"))
            y += _HEAT_MAP_ROW
        above = group
        drawn.append(label(grid.left - 8, y + _HEAT_MAP_ROW / 2 + 4, name, grid.left - 12, anchor="end"))
        drawn += _cells(grid, place, columns, y)
        y += _HEAT_MAP_ROW
    return "".join(drawn), y


def _head(names: list[str], middles: list[float], cell: float, top: float) -> tuple[str, float]:
    drawn, lines = level_names(names, middles, cell, top + 14)
    if lines:
        return drawn, top + 4 + LINE * lines
    bottom = top + min(_LONGEST, max(text_width(name, SMALL) for name in names))
    drawn = "".join(
        turned(x + 4, bottom, name, _LONGEST, degrees=-90, anchor="start")
        for x, name in zip(middles, names, strict=True)
    )
    return drawn, bottom + 6


def _cells(grid: _Grid, row: int, columns: range, y: float) -> Iterator[str]:
    for place, column in enumerate(columns):
        value, x = grid.chart.values[row][column], grid.left + grid.cell * place
        text = "–" if value is None else _written(grid.chart, value, grid.span)
        colour = "none" if value is None else str(bucket(value, grid.span))
        title = tag("title", escaped(f"{grid.chart.rows[row]}, {grid.chart.columns[column]}: {text}"))
        yield tag("rect", title, x=x, y=y, width=grid.cell, height=_HEAT_MAP_ROW, class_=f"cell heat-{colour}")
        middle = x + grid.cell / 2
        # A value of very many digits is wider than its cell. It must not leave the drawing.
        room, base = 2 * min(middle, grid.chart.width - middle), y + _HEAT_MAP_ROW / 2 + SMALL * 0.36
        yield label(middle, base, text, room, anchor="middle", size=SMALL, kind=f"cell-text heat-text-{colour}")


def _key(grid: _Grid, top: float) -> str:
    low, high = (_written(grid.chart, end, grid.span) for end in grid.span)
    left = 4 + text_width(low, SMALL) + 6
    wide = min(18.0, (grid.chart.width - left - text_width(high, SMALL) - 12) / BUCKETS)
    swatches = (
        tag("rect", x=left + wide * place, y=top, width=wide, height=12, class_=f"cell heat-{place}")
        for place in range(BUCKETS)
    )
    before = label(left - 6, top + 10, low, anchor="end", size=SMALL, kind="axis-label")
    behind = label(left + wide * BUCKETS + 6, top + 10, high, size=SMALL, kind="axis-label")
    return before + "".join(swatches) + behind
