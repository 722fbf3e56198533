"""Line charts over ordered categories: how values change from one to the next, with their intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rag_harness.page.charts.axes import Scale, linear
from rag_harness.page.charts.estimates import Estimate, Series, check_series
from rag_harness.page.charts.frame import Box, base_line, categories, left_of, names, no_data, right_of, upright
from rag_harness.page.charts.legends import legend
from rag_harness.page.charts.series_marks import (
    COLOURS,
    colour_at,
    estimate_in_words,
    legend_sample,
    line,
    marker,
    whiskers,
)
from rag_harness.page.charts.svg import CHART_WIDTH, SMALL_WIDTH, Chart, document, tag

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
    drawn = [_series(chart, index, middles, band, place) for index in range(len(chart.series))]
    frame = (head, upright(axis, box), base_line(box), below, names("", chart.y_label, box, 0, chart.width))
    return document(chart, height + 4, *frame, *drawn, desc=_desc(chart), kind="lines")


def _series(chart: Lines, at: int, middles: list[float], band: float, place: Scale) -> str:
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
