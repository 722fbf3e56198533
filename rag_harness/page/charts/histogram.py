"""Histograms below each other on one axis, with mean and 95th percentile."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_harness.page.charts.axes import Axis, linear, short
from rag_harness.page.charts.estimates import check_numbers
from rag_harness.page.charts.fills import filled, fills
from rag_harness.page.charts.frame import Box, base_line, level, names, no_data
from rag_harness.page.charts.svg import CHART_WIDTH, Chart, document, escaped, tag
from rag_harness.page.charts.texts import SMALL, label, text_width

_TALL, _BETWEEN, _ROOM = 54.0, 24.0, 130.0


@dataclass(frozen=True)
class Distribution:
    """A series and its values, one for each trial."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Histogram(Chart):
    """Distributions of one quantity. The axis contains ``include`` too, e.g. (0, 1)."""

    series: tuple[Distribution, ...]
    x_label: str = ""
    bins: int = 20
    percent: bool = False
    include: tuple[float, ...] = ()


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
    axis = linear([*values, *chart.include], percent=chart.percent)
    names_ = [text_width(one.name) for one in chart.series] + [text_width(_many(one), SMALL) for one in chart.series]
    left = min(_ROOM, max(names_)) + 16
    counts = [_counts(one, axis, chart.bins) for one in chart.series]
    most = max(max(row) for row in counts)
    tops = [22 + (_TALL + _BETWEEN) * place for place in range(len(chart.series))]
    boxes = [Box(left, top, CHART_WIDTH - 14, top + _TALL) for top in tops]
    drawn = [_small(chart, index, axis, boxes[index], [n / most for n in row]) for index, row in enumerate(counts)]
    foot = boxes[-1]
    last = foot.bottom + (42 if chart.x_label else 26)
    frame = (level(axis, Box(left, 8, foot.right, foot.bottom)), names(chart.x_label, "", foot, last - 4))
    patterns = fills(chart.ident, range(len(chart.series)))
    desc = (
        f"Histograms of {', '.join(one.name for one in chart.series)}; solid line the mean, dashed the 95th percentile."
    )
    return document(chart, last, patterns, *frame, *drawn, desc=desc, kind="histogram")


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
            fill = filled(chart.ident, index)
            drawn.append(tag("rect", x=x + 0.5, y=box.bottom - tall, width=wide - 1, height=tall, **fill))
    beside = label(box.left - 10, box.bottom - _TALL / 2, one.name, box.left - 14, anchor="end")
    below = label(
        box.left - 10,
        box.bottom - _TALL / 2 + 15,
        _many(one),
        anchor="end",
        size=SMALL,
        kind="axis-label",
    )
    title = tag("title", escaped(f"{one.name}: {len(one.values)} values"))
    return tag("g", title, *drawn, base_line(box), beside, below, _marked(chart, one, axis, box))


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
