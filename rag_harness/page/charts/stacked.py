"""Stacked bars of shares, one for each row. They are easier to compare than pies."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rag_harness.page.charts.axes import Axis, counted, short
from rag_harness.page.charts.estimates import check_shares
from rag_harness.page.charts.fills import filled, fills, swatch
from rag_harness.page.charts.frame import Box, base_line, level, no_data
from rag_harness.page.charts.legends import legend
from rag_harness.page.charts.svg import CHART_WIDTH, Chart, document, escaped, tag
from rag_harness.page.charts.texts import SMALL, label, text_width

_LEAST = 0.06
_TALL, _STEP = 24.0, 34.0
_AXIS = Axis(0, 1, (0, 0.25, 0.5, 0.75, 1), ("0%", "25%", "50%", "75%", "100%"))


@dataclass(frozen=True)
class StackedBar:
    """A bar: the size of each of its parts, in any unit."""

    name: str
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Stacked(Chart):
    """Rows with the same parts, each scaled to 100 %."""

    parts: tuple[str, ...]
    rows: tuple[StackedBar, ...]


def stacked(chart: Stacked) -> str:
    """Return a horizontal bar for each row. Shares of at least 6 % are written inside, the row's sum after it.

    Raises:
        ValueError: a row and the parts differ in number, or a value is negative or no number.
    """
    _check(chart)
    if not any(sum(row.values) for row in chart.rows):
        return no_data(chart, "stacked")
    head, end = legend(chart.parts, lambda *at: swatch(chart.ident, *at), 14)
    left = min(130.0, max(text_width(row.name) for row in chart.rows)) + 12
    right = CHART_WIDTH - 10 - max(text_width(_sum(row), SMALL) for row in chart.rows)
    box = Box(left, end + 6, right, end + 6 + _STEP * len(chart.rows))
    rows = [_row(chart, row, box, box.top + _STEP * (place + 0.5)) for place, row in enumerate(chart.rows)]
    frame = (fills(chart.ident, range(len(chart.parts))), head, level(_AXIS, box), base_line(box))
    desc = f"Shares of {', '.join(chart.parts)} in {', '.join(row.name for row in chart.rows)}."
    return document(chart, box.bottom + 26, *frame, *rows, desc=desc, kind="stacked")


def _check(chart: Stacked) -> None:
    for row in chart.rows:
        who = f"stacked chart {chart.ident!r}"
        if len(row.values) != len(chart.parts):
            raise ValueError(f"{who}: series {row.name!r} has {len(row.values)} values for {len(chart.parts)} parts.")
        check_shares(who, row.name, row.values)


def _sum(row: StackedBar) -> str:
    return f"n = {counted(math.fsum(row.values))}"


def _row(chart: Stacked, row: StackedBar, box: Box, middle: float) -> str:
    total, start, drawn = math.fsum(row.values), 0.0, []
    for index, (part, value) in enumerate(zip(chart.parts, row.values, strict=True)):
        if value:
            share = value / total
            left, right = (box.left + (box.right - box.left) * edge for edge in (start, min(1.0, start + share)))
            title = f"{row.name}, {part}: {short(share, percent=True)} ({counted(value)})"
            drawn.append(_piece(filled(chart.ident, index), left, right, middle, title))
            drawn.append(_inside(share, (left + right) / 2, middle))
            start += share
    if not total:
        drawn.append(label(box.left + 6, middle + 4, "no data", size=SMALL, kind="label mute"))
    beside = label(box.left - 8, middle + 4, row.name, box.left - 12, anchor="end")
    behind = label(box.right + 6, middle + 4, _sum(row), size=SMALL, kind="axis-label")
    return beside + "".join(drawn) + behind


def _piece(fill: dict[str, str], left: float, right: float, middle: float, title: str) -> str:
    inside = tag("title", escaped(title))
    return tag("rect", inside, x=left, y=middle - _TALL / 2, width=right - left, height=_TALL, **fill)


def _inside(share: float, x: float, middle: float) -> str:
    if share < _LEAST:
        return ""
    text = f"{share:.0%}"
    wide = text_width(text, SMALL) + 4
    # The pattern would make the number unreadable, so it has a plate in the page's colour behind it.
    plate = tag("rect", x=x - wide / 2, y=middle - 8, width=wide, height=16, rx=2, class_="plate")
    return plate + label(x, middle + SMALL * 0.36, text, anchor="middle", size=SMALL)
