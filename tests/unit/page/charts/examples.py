"""One small chart of each kind, and any chart for hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from rag_harness.page import charts
from rag_harness.page.charts import Estimate, Series

HOSTILE = "</title></svg><script>alert(1)</script>\"'&\x00\ud800\u202e javascript:"

_TWO = ("e1", "e2")
_SERIES = (
    Series("faithfulness", (Estimate(0.6, 0.5, 0.7), Estimate(0.8, 0.75, 0.85))),
    Series("recall", (Estimate(0.9), None)),
)

# A name, what draws it, and what it draws.
EXAMPLES: dict[str, tuple[Callable[[Any], str], Any]] = {
    "lines": (charts.lines, charts.Lines(ident="a", title="Lines", categories=_TWO, series=_SERIES, y_label="mean")),
    "dots": (
        charts.dots,
        charts.Dots(
            ident="a",
            title="Dots",
            rows=(charts.Dot("e1", Estimate(0.6, 0.5, 0.7)), charts.Dot("e2", None), charts.Dot("e3", Estimate(0.9))),
            include=(0, 1),
        ),
    ),
    "staircase": (
        charts.staircase,
        charts.Staircase(
            ident="a",
            title="Staircase",
            steps=((0, 5), (8, 5), (16, 2), (20, 1)),
            x_label="questions",
            y_label="left",
        ),
    ),
    "pie": (
        charts.pie,
        charts.Pie(
            ident="a",
            title="Pie",
            slices=(charts.PieSlice("lost", 3), charts.PieSlice("none", 0), charts.PieSlice("cut", 1)),
        ),
    ),
    "stacked": (
        charts.stacked,
        charts.Stacked(
            ident="a",
            title="Stacked",
            parts=("lost", "cut"),
            rows=(charts.StackedBar("e1", (30, 1)), charts.StackedBar("e2", (0, 0))),
        ),
    ),
    "scatter": (
        charts.scatter,
        charts.Scatter(
            ident="a",
            title="Scatter",
            points=(
                charts.Point("e1", Estimate(100, 90, 120), Estimate(0.5, 0.4, 0.6)),
                charts.Point("e2", Estimate(300), Estimate(0.4)),
            ),
            x_label="ms",
            y_label="HRI",
        ),
    ),
    "histogram": (
        charts.histogram,
        charts.Histogram(
            ident="a",
            title="Histogram",
            series=(charts.Distribution("e1", (0.1, 0.2, 0.2, 0.9)), charts.Distribution("e2", ())),
            x_label="HRI",
            bins=5,
            include=(0, 1),
        ),
    ),
    "curve": (
        charts.curve,
        charts.Curve(
            ident="a",
            title="Curve",
            series=(charts.CurveLine("e1", (charts.CurvePoint(0.2, 0.1, 4), charts.CurvePoint(0.9, 0.8, 16))),),
            x_label="confidence",
            y_label="right",
            reference=((0, 0), (1, 1)),
            reference_label="ideal",
        ),
    ),
    "heat_map": (
        charts.heat_map,
        charts.HeatMap(
            ident="a", title="Heat map", rows=_TWO, columns=("direct", "multi-hop"), values=((0.1, None), (0.5, 0.9))
        ),
    ),
    "interval_bar": (
        charts.interval_bar,
        charts.IntervalBar(ident="a", title="Gate", value=Estimate(0.8, 0.7, None), threshold=0.75, tone="unsure"),
    ),
}

names = st.one_of(
    st.text(max_size=60), st.sampled_from(["e1", "answer_correctness", "WWWWWWWWWWWWWWWWWWWWWWWWWWWW", HOSTILE])
)
numbers = st.one_of(
    st.floats(-1e6, 1e6), st.floats(0, 1), st.sampled_from([0.0, 1.0, -1.0, 1e-9, 1e15, -1e15, 5e-324, 0.1 + 0.2])
)
counts = st.one_of(st.integers(0, 300), st.floats(0, 1e6))
estimates = st.builds(
    lambda ends, low, high: Estimate(ends[1], ends[0] if low else None, ends[2] if high else None),
    st.lists(numbers, min_size=3, max_size=3).map(sorted),
    st.booleans(),
    st.booleans(),
)


def _several(values: st.SearchStrategy[Any], most: int, least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=least, max_size=most).map(tuple)


@st.composite
def _table(
    draw: st.DrawFn, values: st.SearchStrategy[Any], rows: int, columns: int
) -> tuple[tuple[str, ...], list[tuple[str, tuple[Any, ...]]]]:
    heads = draw(_several(names, columns))
    return heads, draw(st.lists(st.tuples(names, _several(values, len(heads), len(heads))), max_size=rows))


_named = {"ident": st.just("a"), "title": names, "desc": names}
_places = st.builds(charts.CurvePoint, st.floats(0, 1), st.floats(0, 1), st.none() | counts)
_cells = _table(st.none() | numbers, 4, 10)

ANY: dict[str, st.SearchStrategy[Any]] = {
    "lines": st.builds(
        lambda table, **rest: charts.Lines(categories=table[0], series=tuple(Series(*row) for row in table[1]), **rest),
        _table(st.none() | estimates, 5, 8),
        **_named,
        y_label=names,
        percent=st.booleans(),
    ),
    "dots": st.builds(
        charts.Dots,
        rows=_several(st.builds(charts.Dot, names, st.none() | estimates), 12),
        percent=st.booleans(),
        **_named,
    ),
    "pie": st.builds(charts.Pie, slices=_several(st.builds(charts.PieSlice, names, counts), 20), **_named),
    "stacked": st.builds(
        lambda table, **rest: charts.Stacked(
            parts=table[0], rows=tuple(charts.StackedBar(*row) for row in table[1]), **rest
        ),
        _table(counts, 5, 8),
        **_named,
    ),
    "scatter": st.builds(
        charts.Scatter,
        points=_several(st.builds(charts.Point, names, estimates, estimates), 12),
        x_label=names,
        y_label=names,
        better_x=st.sampled_from(["low", "high"]),
        better_y=st.sampled_from(["low", "high"]),
        x_percent=st.booleans(),
        y_percent=st.booleans(),
        named=_several(names, 3),
        kinds=_several(st.tuples(names, st.integers(0, 15)), 6),
        **_named,
    ),
    "staircase": st.builds(
        charts.Staircase,
        steps=_several(st.tuples(counts, counts), 12).map(lambda steps: tuple(sorted(steps))),
        x_label=names,
        y_label=names,
        **_named,
    ),
    "histogram": st.builds(
        charts.Histogram,
        series=_several(st.builds(charts.Distribution, names, _several(numbers, 12)), 4),
        x_label=names,
        percent=st.booleans(),
        **_named,
    ),
    "curve": st.builds(
        charts.Curve,
        series=_several(st.builds(charts.CurveLine, names, _several(_places, 28), st.booleans()), 4),
        x_label=names,
        y_label=names,
        reference=_several(st.tuples(st.floats(0, 1), st.floats(0, 1)), 3),
        reference_label=names,
        **_named,
    ),
    "heat_map": st.builds(
        lambda table, **rest: charts.HeatMap(
            columns=table[0], rows=tuple(row[0] for row in table[1]), values=tuple(row[1] for row in table[1]), **rest
        ),
        _cells,
        colours=st.sampled_from(["sequential", "diverging"]),
        percent=st.booleans(),
        **_named,
    ),
    "interval_bar": st.builds(
        lambda span, **rest: charts.IntervalBar(span=tuple(span), **rest),
        st.lists(numbers, min_size=2, max_size=2, unique=True).map(sorted),
        value=st.none() | estimates,
        threshold=st.none() | numbers,
        better=st.sampled_from(["low", "high"]),
        tone=st.sampled_from(["good", "bad", "unsure", "mute"]),
        is_signed=st.booleans(),
        unit=names,
        **_named,
    ),
}
