"""Stacked bars of shares, one for each row. They are easier to compare than pies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_harness.page.charts.axes import Axis, counted, short
from rag_harness.page.charts.estimates import check_shares
from rag_harness.page.charts.fills import filled, fills, swatch
from rag_harness.page.charts.frame import Box, base_line, level, no_data
from rag_harness.page.charts.legends import legend
from rag_harness.page.charts.row_names import Rows, rows_below
from rag_harness.page.charts.series_marks import colour_at
from rag_harness.page.charts.svg import Chart, document, escaped, tag
from rag_harness.page.charts.texts import SMALL, label, text_width

_TALL, _BETWEEN = 20.0, 8.0
_SEEN = 6.0
"""How much of a part is seen beside the number in it."""
_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), ("0%", "25%", "50%", "75%", "100%"))


@dataclass(frozen=True)
class StackedBar:
    """A bar: the size of each of its parts, in any unit."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Stacked(Chart):
    """Rows with the same parts, each scaled to 100 %.

    ``colours`` are the numbers of the parts' colours and patterns; without them they are their positions.
    """

    parts: tuple[str, ...]
    rows: tuple[StackedBar, ...]
    colours: tuple[int, ...] = ()

    def colour(self, part: int) -> int:
        """Return the number of a part's colour and pattern."""
        return colour_at(self.colours[part] if self.colours else None, part)


def stacked(chart: Stacked) -> str:
    """Return a horizontal bar for each row. A share is written inside where it has room, the row's sum after it.

    Raises:
        ValueError: a row and the parts differ in number, or a value is negative or no number.
    """
    _check(chart)
    if not any(sum(row.values) for row in chart.rows):
        return no_data(chart, "stacked")
    colours = [chart.colour(part) for part in range(len(chart.parts))]
    head, end = legend(chart.parts, lambda *at: swatch(chart.ident, *at), 14, chart.width, colours)
    rows = rows_below(end + 4, (row.name for row in chart.rows), chart.width, _TALL + _BETWEEN)
    right = chart.width - 10 - max(text_width(_sum(row), SMALL) for row in chart.rows)
    box = Box(rows.left, rows.top, right, rows.end(len(chart.rows)))
    drawn = [_row(chart, place, rows, box) for place in range(len(chart.rows))]
    frame = (fills(chart.ident, colours), head, level(_AXIS, box, chart.width), base_line(box))
    desc = f"Shares of {', '.join(chart.parts)} in {', '.join(row.name for row in chart.rows)}."
    return document(chart, box.bottom + 26, *frame, *drawn, desc=desc, kind="stacked")


def _check(chart: Stacked) -> None:
    for row in chart.rows:
        who = f"stacked chart {chart.ident!r}"
        if len(row.values) != len(chart.parts):
            raise ValueError(f"{who}: series {row.name!r} has {len(row.values)} values for {len(chart.parts)} parts.")
        check_shares(who, row.name, row.values)


def _sum(row: StackedBar) -> str:
    return f"n = {counted(math.fsum(row.values))}"


def _row(chart: Stacked, place: int, rows: Rows, box: Box) -> str:
    row, middle = chart.rows[place], rows.middle(place)
    total, start, drawn = math.fsum(row.values), 0.0, []
    for index, (part, value) in enumerate(zip(chart.parts, row.values, strict=True)):
        if value:
            share = value / total
            left, right = (box.left + (box.right - box.left) * edge for edge in (start, min(1.0, start + share)))
            title = f"{row.name}, {part}: {short(share, percent=True)} ({counted(value)})"
            drawn.append(_piece(filled(chart.ident, chart.colour(index)), left, right, middle, title))
            drawn.append(_inside(share, left, right, middle))
            start += share
    if not total:
        drawn.append(label(box.left + 6, middle + 4, "no data", size=SMALL, kind="label mute"))
    beside = rows.name(row.name, place, chart.width - 4)
    behind = label(box.right + 6, middle + 4, _sum(row), size=SMALL, kind="axis-label")
    return beside + "".join(drawn) + behind


def _piece(fill: dict[str, str], left: float, right: float, middle: float, title: str) -> str:
    inside = tag("title", escaped(title))
    return tag("rect", inside, x=left, y=middle - _TALL / 2, width=right - left, height=_TALL, **fill)


def _inside(share: float, left: float, right: float, middle: float) -> str:
    text, x = f"{share:.0%}", (left + right) / 2
    wide = text_width(text, SMALL) + 2
    if wide + _SEEN > right - left:
        return ""
    # The pattern would make the number unreadable, so it has a plate in the page's colour behind it.
    plate = tag("rect", x=x - wide / 2, y=middle - 8, width=wide, height=16, rx=2, class_="plate")
    return plate + label(x, middle + SMALL * 0.36, text, anchor="middle", size=SMALL)
