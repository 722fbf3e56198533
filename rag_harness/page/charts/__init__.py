"""Charts: pure functions from numbers to SVG, with only the standard library.

A chart is a frozen dataclass, and one function draws it: the same input gives the same bytes. The SVG goes into an HTML
page as it is: every text in it is escaped, it has no style of its own, and its colours are classes of ``charts.css``,
which ``stylesheet`` returns. NaN, infinity and data of the wrong shape raise a ValueError that names chart and series.
A chart without data says so. ``drawings`` calls charts. Begin reading with ``plots.py`` and ``frame.py``.
"""

from __future__ import annotations

from rag_harness.page.charts.bars import (
    Dot,
    Dots,
    IntervalBar,
    Pie,
    PieSlice,
    Stacked,
    StackedBar,
    dots,
    interval_bar,
    pie,
    stacked,
)
from rag_harness.page.charts.distributions import Distribution, HeatMap, Histogram, heat_map, histogram
from rag_harness.page.charts.frame import Estimate, Series, fill_number
from rag_harness.page.charts.plots import (
    Curve,
    CurveLine,
    CurvePoint,
    Lines,
    Point,
    Scatter,
    Staircase,
    curve,
    lines,
    pareto,
    scatter,
    staircase,
)
from rag_harness.page.charts.svg import stylesheet

__all__ = [
    "Curve",
    "CurveLine",
    "CurvePoint",
    "Distribution",
    "Dot",
    "Dots",
    "Estimate",
    "HeatMap",
    "Histogram",
    "IntervalBar",
    "Lines",
    "Pie",
    "PieSlice",
    "Point",
    "Scatter",
    "Series",
    "Stacked",
    "StackedBar",
    "Staircase",
    "curve",
    "dots",
    "fill_number",
    "heat_map",
    "histogram",
    "interval_bar",
    "lines",
    "pareto",
    "pie",
    "scatter",
    "stacked",
    "staircase",
    "stylesheet",
]
