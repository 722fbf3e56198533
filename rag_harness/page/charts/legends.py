"""Legends: samples with names, in as many lines as needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rag_harness.page.charts.series_marks import colour_at
from rag_harness.page.charts.svg import SIZE, tag
from rag_harness.page.charts.texts import LINE, label, shortened, text_width

_GAP, _BESIDE = 18.0, 6.0
# Draws the sample of a series at x and at the height of the line's middle.
Sample = Callable[[int, float, float], str]


def legend(
    names: Sequence[str],
    sample: Sample,
    sample_width: float,
    width: float,
    colours: Sequence[int | None] = (),
) -> tuple[str, float]:
    """Return the legend and its lower end; nothing where there are no names.

    ``width`` is that of the chart. ``colours`` are those of the series; without them they are their positions.
    """
    left, right, top = 4.0, width - 4, 4.0
    room = min(200.0, right - left - sample_width - _BESIDE)
    x, y, drawn = left, top + LINE / 2, []
    for index, name in enumerate(names):
        colour = colour_at(colours[index] if colours else None, index)
        wide = sample_width + _BESIDE + text_width(shortened(name, room))
        if x > left and x + wide > right:
            x, y = left, y + LINE + 2
        drawn += [sample(colour, x, y), label(x + sample_width + _BESIDE, y + SIZE * 0.35, name, room)]
        x += wide + _GAP
    return (tag("g", *drawn, class_="legend"), y + LINE / 2 + 6) if names else ("", top)
