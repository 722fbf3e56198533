"""Histograms below each other on one axis, with mean and 95th percentile."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from rag_harness.page.charts.axes import Axis, linear, short
from rag_harness.page.charts.estimates import check_numbers
from rag_harness.page.charts.fills import filled, fills
from rag_harness.page.charts.frame import Box, base_line, level, names, no_data
from rag_harness.page.charts.series_marks import colour_at
from rag_harness.page.charts.svg import SMALL_WIDTH, Chart, document, escaped, tag
from rag_harness.page.charts.texts import SMALL, label, text_width

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
