"""Dots with their intervals, a row for each name: what is compared on one measure."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.page.charts.axes import Scale, linear, short
from rag_harness.page.charts.estimates import Estimate, check_estimates
from rag_harness.page.charts.frame import Box, base_line, level, no_data
from rag_harness.page.charts.row_names import Rows, rows_below
from rag_harness.page.charts.series_marks import COLOURS, colour_at, estimate_in_words, marker, whiskers
from rag_harness.page.charts.svg import Chart, document, tag
from rag_harness.page.charts.texts import SMALL, label, text_width

_TALL, _FOOT = 22.0, 26.0
_NONE = "n/a"


@dataclass(frozen=True)
class Dot:
    """A name with its value; None is a missing value. ``colour`` is the number of its colour and shape."""

    name: str
    value: Estimate | None
    colour: int | None = None


@dataclass(frozen=True, kw_only=True)
class Dots(Chart):
    """Rows on one axis. The axis contains ``include`` too, e.g. (0, 1). ``percent`` writes 0.5 as 50%."""

    rows: tuple[Dot, ...]
    percent: bool = False
    include: tuple[float, ...] = ()


def dots(chart: Dots) -> str:
    """Return a row for each name, with a mark, its interval as a line, and its value as a number.

    Raises:
        ValueError: a number cannot be drawn, or an interval is inverted.
    """
    who = f"dots chart {chart.ident!r}"
    values = [n for row in chart.rows if row.value for n in check_estimates(who, row.name, [row.value])]
    if not values:
        return no_data(chart, "dots")
    axis = linear([*values, *chart.include], count=4, percent=chart.percent)
    rows = rows_below(2.0, (row.name for row in chart.rows), chart.width, _TALL)
    said = [_NONE if row.value is None else short(row.value.value, percent=chart.percent) for row in chart.rows]
    right = chart.width - max(text_width(text) for text in said) - 16
    box = Box(rows.left + 6, rows.top, right, rows.end(len(chart.rows)))
    drawn = [
        _row(chart, at, rows, axis.scale(box.left, box.right)) + _value(text, rows.middle(at), chart.width)
        for at, text in enumerate(said)
    ]
    frame = level(axis, box, chart.width) + base_line(box)
    told = ", ".join(f"{row.name} {text}" for row, text in zip(chart.rows, said, strict=True))
    return document(chart, box.bottom + _FOOT, frame, *drawn, desc=f"{told}. Lines are intervals.", kind="dots")


def _row(chart: Dots, at: int, rows: Rows, place: Scale) -> str:
    row, y = chart.rows[at], rows.middle(at)
    name = rows.name(row.name, at, chart.width - 4)
    if row.value is None:
        return name
    index = colour_at(row.colour, at)
    title = f"{row.name}: {estimate_in_words(row.value, percent=chart.percent)}"
    mark = marker(index, place(row.value.value), y, 5.0, title)
    low, high = (place(row.value.value if end is None else end) for end in (row.value.low, row.value.high))
    line = whiskers((low, high), y, f"stroke-{index % COLOURS}", upright=False) if low != high else ""
    return name + tag("g", line, mark, class_=f"series-{index % COLOURS}")


def _value(text: str, middle: float, width: float) -> str:
    kind = "label mute" if text == _NONE else "label"
    return label(width - 4, middle + SMALL * 0.36, text, anchor="end", kind=kind)
