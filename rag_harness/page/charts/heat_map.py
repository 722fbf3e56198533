"""A table of values with coloured cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from rag_harness.page.charts.axes import short
from rag_harness.page.charts.buckets import BUCKETS, bucket
from rag_harness.page.charts.estimates import check_numbers
from rag_harness.page.charts.frame import level_names, no_data
from rag_harness.page.charts.svg import Chart, document, escaped, tag
from rag_harness.page.charts.texts import LINE, SMALL, label, text_width, turned

_TALL, _WIDEST, _NARROWEST, _LONGEST, _LONGEST_ROW, _BETWEEN = 22.0, 60.0, 24.0, 110.0, 120.0, 18.0


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
        top = bottom + _BETWEEN
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
            drawn.append(label(4, y + _TALL - 6, group, grid.chart.width - 8, size=SMALL, kind="label mute"))
            y += _TALL
        above = group
        drawn.append(label(grid.left - 8, y + _TALL / 2 + 4, name, grid.left - 12, anchor="end"))
        drawn += _cells(grid, place, columns, y)
        y += _TALL
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
        yield tag("rect", title, x=x, y=y, width=grid.cell, height=_TALL, class_=f"cell heat-{colour}")
        middle = x + grid.cell / 2
        # A value of very many digits is wider than its cell. It must not leave the drawing.
        room, base = 2 * min(middle, grid.chart.width - middle), y + _TALL / 2 + SMALL * 0.36
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
