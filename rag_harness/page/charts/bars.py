"""Grouped bars: values by category and series, with their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_harness.page.charts.axes import Axis, Scale, linear
from rag_harness.page.charts.estimates import Estimate, Series, check_series
from rag_harness.page.charts.fills import filled, fills, swatch
from rag_harness.page.charts.frame import RIGHT, Box, base_line, categories, left_of, names, no_data, upright
from rag_harness.page.charts.legends import legend
from rag_harness.page.charts.series_marks import COLOURS, estimate_in_words, whiskers
from rag_harness.page.charts.svg import Chart, document, escaped, tag
from rag_harness.page.charts.texts import text_width, turned

_TALL, _BETWEEN = 170.0, 16.0
_THIN, _THICK, _GAP = 8.0, 34.0, 18.0
_LABEL = 116.0


@dataclass(frozen=True, kw_only=True)
class Bars(Chart):
    """Series over categories. ``percent`` writes 0.5 as 50%. The axis contains 0 and ``include``."""

    categories: tuple[str, ...]
    series: tuple[Series, ...]
    y_label: str = ""
    percent: bool = False
    include: tuple[float, ...] = ()


def bars(chart: Bars) -> str:
    """Return a group of bars for each category, in as many rows as keep them readable; None is written as n/a.

    Raises:
        ValueError: a series and the categories differ in number, or a number cannot be drawn.
    """
    values = check_series(f"bars chart {chart.ident!r}", chart.categories, chart.series)
    if not values:
        return no_data(chart, "bars")
    head, end = legend([one.name for one in chart.series], lambda *at: swatch(chart.ident, *at), 14)
    axis = linear([0.0, *values, *chart.include], count=4, percent=chart.percent)
    per_row = _per_row(chart, RIGHT - left_of(axis))
    drawn, top = [], end + (26 if chart.y_label else 10)
    drawn.append(names("", chart.y_label, Box(left_of(axis), top, RIGHT, top), 0))
    for first in range(0, len(chart.categories), per_row):
        row, bottom = _row(chart, axis, range(first, min(first + per_row, len(chart.categories))), per_row, top)
        drawn.append(row)
        top = bottom + _BETWEEN
    patterns = fills(chart.ident, range(len(chart.series)))
    return document(chart, top - _BETWEEN + 4, patterns, head, *drawn, desc=_desc(chart), kind="bars")


def _per_row(chart: Bars, room: float) -> int:
    widest = min(_LABEL, max(text_width(text) for text in chart.categories) + 8)
    least = max(widest, len(chart.series) * _THIN + _GAP)
    rows = math.ceil(len(chart.categories) / max(1, int(room / least)))
    return math.ceil(len(chart.categories) / rows)


def _row(chart: Bars, axis: Axis, members: range, per_row: int, top: float) -> tuple[str, float]:
    left = left_of(axis)
    band = (RIGHT - left) / per_row
    box = Box(left, top, left + band * len(members), top + _TALL)
    place = axis.scale(box.bottom, box.top)
    middles = [left + band * (number + 0.5) for number in range(len(members))]
    below, end = categories([chart.categories[member] for member in members], middles, band, box.bottom)
    groups = [_group(chart, member, band, middle, place) for member, middle in zip(members, middles, strict=True)]
    return upright(axis, box) + "".join(groups) + base_line(box, place(0)) + below, end


def _group(chart: Bars, member: int, band: float, middle: float, place: Scale) -> str:
    width = min(_THICK, (band - min(_GAP, band / 4)) / len(chart.series))
    left = middle - width * len(chart.series) / 2
    return "".join(_bar(chart, index, member, left + width * index, width, place) for index in range(len(chart.series)))


def _bar(chart: Bars, index: int, member: int, left: float, width: float, place: Scale) -> str:
    series, zero, middle = chart.series[index], place(0), left + width / 2
    value = series.values[member]
    if value is None:
        return turned(middle + 4, zero - 4, "n/a", 40, degrees=-90, anchor="start")
    y, gap = place(value.value), min(1.0, width / 8)
    title = f"{series.name}, {chart.categories[member]}: {estimate_in_words(value, percent=chart.percent)}"
    fill = filled(chart.ident, index)
    bar = tag(
        "rect",
        tag("title", escaped(title)),
        x=left + gap,
        y=min(y, zero),
        width=width - 2 * gap,
        height=abs(y - zero),
        fill=fill["fill"],
        class_=f"{fill['class_']} series-{index % COLOURS}",
    )
    return bar + _interval(value, middle, place, min(3.0, width / 3))


def _interval(value: Estimate, middle: float, place: Scale, cap: float) -> str:
    if value.low is None and value.high is None:
        return ""
    low, high = (place(value.value if end is None else end) for end in (value.low, value.high))
    # A wider stroke in the page's colour separates the interval from the bar's pattern.
    halo = tag("line", x1=middle, x2=middle, y1=low, y2=high, class_="halo")
    return halo + whiskers((low, high), middle, "ink", cap=cap)


def _desc(chart: Bars) -> str:
    told = ", ".join(one.name for one in chart.series)
    return f"Bars of {told} for {', '.join(chart.categories)}; thin lines are intervals, n/a was not measured."
