"""Charts: pure functions from numbers to SVG, with only the standard library.

A chart is a frozen dataclass, and one function draws it: the same input gives the same bytes. The SVG goes into an HTML
page as it is: every text in it is escaped, it has no style of its own, and its colours are classes of ``charts.css``,
which ``stylesheet`` returns. NaN, infinity and data of the wrong shape raise a ValueError that names chart and series.
A chart without data says so.
"""

from __future__ import annotations

from rag_harness.page.charts.curve import Curve, CurveLine, CurvePoint, curve
from rag_harness.page.charts.dots import Dot, Dots, dots
from rag_harness.page.charts.estimates import Estimate, Series
from rag_harness.page.charts.fills import fill_number
from rag_harness.page.charts.heat_map import HeatMap, heat_map
from rag_harness.page.charts.histogram import Distribution, Histogram, histogram
from rag_harness.page.charts.interval_bar import IntervalBar, interval_bar
from rag_harness.page.charts.lines import Lines, lines
from rag_harness.page.charts.pareto import pareto
from rag_harness.page.charts.pie import Pie, PieSlice, pie
from rag_harness.page.charts.scatter import Point, Scatter, scatter
from rag_harness.page.charts.stacked import Stacked, StackedBar, stacked
from rag_harness.page.charts.staircase import Staircase, staircase
from rag_harness.page.charts.stylesheet import stylesheet

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
