"""The frame of a plot: grid, ticks with labels, names of the axes; and the chart without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rag_harness.page.charts.axes import Axis
from rag_harness.page.charts.svg import Chart, document, tag
from rag_harness.page.charts.texts import LINE, SMALL, broken, drop, label, reach, text_width, turned

_MARGIN = 12.0
_LONGEST = 130.0


@dataclass(frozen=True)
class Box:
    """The area of a plot's marks."""

    left: float
    top: float
    right: float
    bottom: float


def no_data(chart: Chart, kind: str) -> str:
    """Return a chart that says that there is no data."""
    text = label(chart.width / 2, 38, "No data: nothing was measured.", chart.width, anchor="middle", kind="label mute")
    return document(chart, 64, text, desc="There is no data to draw.", kind=kind)


def right_of(chart: Chart) -> float:
    """Return the right edge of a plot."""
    return chart.width - _MARGIN


def left_of(axis: Axis) -> float:
    """Return the left edge of a plot, beside the labels of its vertical axis."""
    return max(text_width(text, SMALL) for text in axis.labels) + 12


def upright(axis: Axis, box: Box) -> str:
    """Return grid lines and labels of a vertical axis."""
    place = axis.scale(box.bottom, box.top)
    drawn = []
    for tick, text in zip(axis.ticks, axis.labels, strict=True):
        y = place(tick)
        drawn.append(tag("line", x1=box.left, x2=box.right, y1=y, y2=y, class_="grid"))
        drawn.append(label(box.left - 6, y + SMALL * 0.35, text, anchor="end", size=SMALL, kind="axis-label"))
    return "".join(drawn)


def level(axis: Axis, box: Box, width: float, *, grid: bool = True) -> str:
    """Return grid lines and labels of a horizontal axis. Labels that would touch are left out.

    ``width`` is that of the chart, beyond which no label reaches.
    """
    place = axis.scale(box.left, box.right)
    drawn, taken = [], -1.0
    for tick, text in zip(axis.ticks, axis.labels, strict=True):
        x, half = place(tick), text_width(text, SMALL) / 2
        drawn.append(tag("line", x1=x, x2=x, y1=box.top if grid else box.bottom, y2=box.bottom + 4, class_="grid"))
        middle = min(max(x, half), width - half)
        if middle - half > taken:
            y = box.bottom + 18
            drawn.append(label(middle, y, text, anchor="middle", size=SMALL, kind="axis-label"))
            taken = middle + half + 6
    return "".join(drawn)


def base_line(box: Box) -> str:
    """Return the line below the marks."""
    return tag("line", x1=box.left, x2=box.right, y1=box.bottom, y2=box.bottom, class_="axis")


def names(x_label: str, y_label: str, box: Box, below: float, width: float) -> str:
    """Return the names of the axes: the horizontal one's below its middle, the vertical one's above its top."""
    drawn = []
    if x_label:
        half = min(text_width(x_label), width - 8) / 2
        middle = min(max((box.left + box.right) / 2, half + 4), width - half - 4)
        drawn.append(label(middle, below, x_label, 2 * half, anchor="middle", kind="axis-name"))
    if y_label:
        drawn.append(label(4, box.top - 14, y_label, width - 8, kind="axis-name"))
    return "".join(drawn)


def categories(texts: Sequence[str], middles: Sequence[float], band: float, top: float) -> tuple[str, float]:
    """Return the labels below categories, and where they end. Labels are turned where two lines are too few."""
    drawn, lines = level_names(texts, middles, band, top + LINE)
    if lines:
        return drawn, top + LINE * lines + 6
    widths = [text_width(text) for text in texts]
    rooms = [min(_LONGEST, width, reach(x - 4)) for width, x in zip(widths, middles, strict=True)]
    drawn = "".join(turned(x + 4, top + 14, text, room) for x, text, room in zip(middles, texts, rooms, strict=True))
    return drawn, top + 14 + drop(max(rooms))


def level_names(texts: Sequence[str], middles: Sequence[float], band: float, top: float) -> tuple[str, int]:
    """Return names in one or two lines within their bands, and the number of lines; 0 where a name needs more."""
    split = [broken(text, band - 4) for text in texts]
    lines = [(x, line) for x, line in zip(middles, split, strict=True) if line]
    if len(lines) < len(texts):
        return "", 0
    drawn = (
        label(x, top + LINE * place, part, anchor="middle") for x, line in lines for place, part in enumerate(line)
    )
    return "".join(drawn), max(len(line) for _, line in lines)
