"""What cannot be drawn is refused with the chart and the series named."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest

from rag_harness.page import charts
from rag_harness.page.charts import Estimate, Series

_A: dict[str, Any] = {"ident": "a", "title": ""}


def _lines(value: Estimate) -> str:
    return charts.lines(charts.Lines(**_A, categories=("e1",), series=(Series("recall", (value,)),)))


def _curve(*points: charts.CurvePoint, reference: Any = ()) -> str:
    series = (charts.CurveLine("recall", points),)
    return charts.curve(charts.Curve(**_A, series=series, x_label="", y_label="", reference=reference))


@pytest.mark.parametrize(
    "draw",
    [
        lambda bad: _lines(Estimate(bad)),
        lambda bad: _lines(Estimate(0, None, bad)),
        lambda bad: charts.dots(charts.Dots(**_A, rows=(charts.Dot("recall", Estimate(bad)),))),
        lambda bad: charts.pie(charts.Pie(**_A, slices=(charts.PieSlice("recall", bad),))),
        lambda bad: charts.stacked(charts.Stacked(**_A, parts=("x",), rows=(charts.StackedBar("recall", (bad,)),))),
        lambda bad: charts.scatter(
            charts.Scatter(**_A, points=(charts.Point("recall", Estimate(bad), Estimate(0)),), x_label="", y_label="")
        ),
        lambda bad: charts.histogram(charts.Histogram(**_A, series=(charts.Distribution("recall", (bad,)),))),
        lambda bad: _curve(charts.CurvePoint(bad, 0)),
        lambda bad: _curve(charts.CurvePoint(0, 0, bad)),
        lambda bad: charts.heat_map(charts.HeatMap(**_A, rows=("recall",), columns=("x",), values=((bad,),))),
    ],
)
def test_numbers_that_are_none(draw: Callable[[float], str]) -> None:
    wanted = re.compile(r"chart 'a': series 'recall' has the value .* cannot be drawn")
    said = {bad: refusal(draw, bad) for bad in (nan, inf, -inf, 2e15)}
    assert {bad: text for bad, text in said.items() if not wanted.search(text)} == {}


def refusal(draw: Callable[[float], str], bad: float) -> str:
    try:
        draw(bad)
    except ValueError as refused:
        return str(refused)
    return "it is drawn"


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: _lines(Estimate(0.5, 0.6, 0.4)), "series 'recall' has an interval from 0.6 to 0.4; swap its ends"),
        (
            lambda: charts.lines(charts.Lines(**_A, categories=("e1", "e2"), series=(Series("recall", (None,)),))),
            "series 'recall' has 1 values for 2 categories",
        ),
        (
            lambda: charts.pie(charts.Pie(**_A, slices=(charts.PieSlice("lost", -1),))),
            "'lost' has the value -1; a share",
        ),
        (
            lambda: charts.stacked(charts.Stacked(**_A, parts=("x",), rows=(charts.StackedBar("e1", (1, 2)),))),
            "stacked chart 'a': series 'e1' has 2 values for 1 parts",
        ),
        (lambda: _curve(charts.CurvePoint(0, 1.1)), "curve chart 'a': series 'recall' has 1.1; places are from 0 to 1"),
        (lambda: _curve(charts.CurvePoint(0, 1, -3)), "series 'recall' has -3"),
        (lambda: _curve(reference=((0, 2),)), "series 'reference' has 2"),
        (
            lambda: charts.heat_map(charts.HeatMap(**_A, rows=("e1",), columns=("x",), values=((1.0, 2.0),))),
            r"heat map chart 'a': rows of \[2\] values for 1 rows, 1 columns",
        ),
        (
            lambda: charts.interval_bar(charts.IntervalBar(**_A, value=None, span=(1, 1))),
            "interval bar chart 'a': the span from 1 to 1 holds nothing",
        ),
        (
            lambda: charts.interval_bar(charts.IntervalBar(**_A, value=None, threshold=nan)),
            "interval bar chart 'a': series 'span' has the value nan",
        ),
        (
            lambda: charts.interval_bar(charts.IntervalBar(**_A, value=Estimate(inf))),
            "interval bar chart 'a': series 'value' has the value inf",
        ),
    ],
)
def test_data_of_the_wrong_shape(draw: Callable[[], str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()
