"""A staircase: a count that changes in steps, over another that grows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_harness.page.charts.axes import Scale, counted, linear
from rag_harness.page.charts.estimates import check_numbers
from rag_harness.page.charts.frame import Box, base_line, left_of, level, names, no_data, right_of, upright
from rag_harness.page.charts.series_marks import line, marker
from rag_harness.page.charts.svg import Chart, document, tag

_TALL = 150.0


@dataclass(frozen=True, kw_only=True)
class Staircase(Chart):
    """Places ``(x, count)`` by rising x. A count holds until the next place."""

    steps: tuple[tuple[float, float], ...]
    x_label: str
    y_label: str


def staircase(chart: Staircase) -> str:
    """Return the line, with a mark where the count changes and at both ends.

    Raises:
        ValueError: a number cannot be drawn.
    """
    if not chart.steps:
        return no_data(chart, "staircase")
    check_numbers(f"staircase chart {chart.ident!r}", chart.y_label, (each for step in chart.steps for each in step))
    across = linear([0, *(x for x, _ in chart.steps)], count=4)
    up = linear([0, *(y for _, y in chart.steps)], count=4)
    box = Box(left_of(up), 30.0, right_of(chart) - 8, 30.0 + _TALL)
    to_x, to_y = across.scale(box.left, box.right), up.scale(box.bottom, box.top)
    frame = (
        upright(up, box),
        level(across, box, chart.width),
        base_line(box),
        names(chart.x_label, chart.y_label, box, box.bottom + 40, chart.width),
    )
    drawn = tag("g", line(0, list(_corners(chart, to_x, to_y))), *_marks(chart, to_x, to_y), class_="series-0")
    (_, first), (end, last) = chart.steps[0], chart.steps[-1]
    desc = f"{chart.y_label}: {counted(first)} at first, {counted(last)} at {counted(end)} {chart.x_label}."
    return document(chart, box.bottom + 48, *frame, drawn, desc=desc, kind="staircase")


def _corners(chart: Staircase, to_x: Scale, to_y: Scale) -> Iterator[tuple[float, float]]:
    known = chart.steps[0][1]
    for x, y in chart.steps:
        yield to_x(x), to_y(known)
        yield to_x(x), to_y(y)
        known = y


def _marks(chart: Staircase, to_x: Scale, to_y: Scale) -> Iterator[str]:
    last = len(chart.steps) - 1
    for at, (x, y) in enumerate(chart.steps):
        if at in (0, last) or y != chart.steps[at - 1][1]:
            title = f"{chart.x_label} {counted(x)}: {chart.y_label} {counted(y)}"
            yield marker(0, to_x(x), to_y(y), title=title)
