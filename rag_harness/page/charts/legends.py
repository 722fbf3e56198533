"""Legends: samples with names, in as many lines as needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_harness.page.charts.svg import CHART_WIDTH, SIZE, tag
from rag_harness.page.charts.texts import LINE, label, shortened, text_width

_GAP, _BESIDE = 18.0, 6.0
# Draws the sample of a series at x and at the height of the line's middle.
Sample = Callable[[int, float, float], str]


def legend(
    names: Sequence[str],
    sample: Sample,
    sample_width: float,
    *,
    left: float = 4.0,
    right: float = CHART_WIDTH - 4,
    top: float = 4.0,
) -> tuple[str, float]:
    """Return the legend and its lower end; nothing where there are no names."""
    room = min(200.0, right - left - sample_width - _BESIDE)
    x, y, drawn = left, top + LINE / 2, []
    for index, name in enumerate(names):
        width = sample_width + _BESIDE + text_width(shortened(name, room))
        if x > left and x + width > right:
            x, y = left, y + LINE + 2
        drawn += [sample(index, x, y), label(x + sample_width + _BESIDE, y + SIZE * 0.35, name, room)]
        x += width + _GAP
    return (tag("g", *drawn, class_="legend"), y + LINE / 2 + 6) if names else ("", top)
