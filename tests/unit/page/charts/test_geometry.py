"""Geometry says what the numbers say: rising, in proportion, all of it there."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.page import charts
from rag_harness.page.charts import Distribution, Estimate, PieSlice, Series, StackedBar
from rag_harness.page.charts.pareto import Better
from tests.unit.page.charts.examples import HOSTILE
from tests.unit.page.charts.shapes import arcs, shapes, texts, view_box

_values = st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=12)
_positive = st.lists(st.floats(0.01, 1e4), min_size=1, max_size=8)
_few = settings(max_examples=25)


def series(values: list[float]) -> tuple[tuple[str, ...], tuple[Series, ...]]:
    return tuple(f"e{place}" for place in range(len(values))), (Series("s", tuple(map(Estimate, values))),)


def rising(pairs: list[tuple[float, float]]) -> bool:
    """Return whether places never fall where values rise; rounded to what is written."""
    places = [place for _, place in sorted(pairs)]
    return all(after >= before - 0.02 for before, after in pairwise(places))


@_few
@given(_values)
def test_marks_of_lines_rise_with_values(values: list[float]) -> None:
    categories, given_ = series(values)
    svg = charts.lines(charts.Lines(ident="a", title="", categories=categories, series=given_))
    marks = shapes(svg, "edge", "circle")[1:]  # the first is the legend's
    assert rising([(value, -mark.top) for value, mark in zip(values, marks, strict=True)])


@_few
@given(_values)
def test_bars_are_as_tall_as_their_values_and_on_the_side_of_their_sign(values: list[float]) -> None:
    categories, given_ = series(values)
    svg = charts.bars(charts.Bars(ident="a", title="", categories=categories, series=given_))
    bars = shapes(svg, "series-0", "rect")
    largest = max(*values, -min(values))
    tallest = max(bar.bottom - bar.top for bar in bars)
    zero = {}
    for value, bar in zip(values, bars, strict=True):
        if largest > 1e-6:
            assert bar.bottom - bar.top == pytest.approx(tallest * abs(value) / largest, abs=0.03)
        zero[bar.left] = bar.bottom if value > 0 else bar.top
    if len(bars) <= 5:  # in one row
        assert max(zero.values()) - min(zero.values()) <= 0.03


def test_a_value_that_was_not_measured_is_a_gap_in_its_line() -> None:
    def runs(*values: float | None) -> int:
        given_ = (Series("s", tuple(None if value is None else Estimate(value) for value in values)),)
        chart = charts.Lines(ident="a", title="", categories=("a", "b", "c", "d", "e"), series=given_)
        return len(shapes(charts.lines(chart), "line", "polyline")) - 1  # but for the legend's

    assert runs(1, 2, 3, 4, 5) == 1
    assert runs(1, 2, None, 4, 5) == 2
    assert runs(1, None, 3, None, 5) == 0


def test_equal_values_of_two_series_stand_beside_each_other() -> None:
    given_ = tuple(Series(name, (Estimate(1, 0, 2),)) for name in ("s", "t"))
    svg = charts.lines(charts.Lines(ident="a", title="", categories=("a",), series=given_))
    one, other = (shape for shape in shapes(svg, "edge") if shape.title)
    assert (other.left + other.right) / 2 - (one.left + one.right) / 2 == pytest.approx(7)


@pytest.mark.parametrize("value", [0.9, -0.9])
def test_bars_begin_at_zero(value: float) -> None:
    categories, given_ = series([value, 1.1 * value])
    svg = charts.bars(charts.Bars(ident="a", title="", categories=categories, series=given_))
    assert any(text.strip("0.") == "" for text in texts(svg))
    frame = shapes(svg, "grid", "line")
    for bar in shapes(svg, "series-0", "rect"):
        assert min(line.top for line in frame) <= bar.top
        assert bar.bottom <= max(line.top for line in frame)


def test_names_of_points_cover_neither_each_other_nor_error_bars() -> None:
    places = (
        (800, 0.55),
        (1100, 0.63),
        (1400, 0.74),
        (2400, 0.82),
        (1120, 0.62),
        (1150, 0.64),
        (2600, 0.8),
        (1390, 0.76),
    )
    points = tuple(
        charts.Point(f"e{place}", Estimate(x, 0.9 * x, 1.1 * x), Estimate(y, y - 0.03, y + 0.03))
        for place, (x, y) in enumerate(places)
    )
    svg = charts.scatter(charts.Scatter(ident="a", title="", points=points, x_label="ms", y_label="HRI"))
    names = shapes(svg, "halo-text")
    for place, one in enumerate(names):
        for other in [*names[place + 1 :], *shapes(svg, "whiskers")]:
            across = min(one.right, other.right) - max(one.left, other.left)
            down = min(one.bottom, other.bottom) - max(one.top, other.top)
            assert min(across, down) <= 1, (one, other)


def test_the_name_of_a_point_goes_where_no_error_bar_of_another_is() -> None:
    places = {"here": Estimate(0.5), "close by": Estimate(0.3, 0.2, 0.9), "far": Estimate(0.1)}
    points = tuple(
        charts.Point(name, Estimate(x), y) for x, (name, y) in zip((100, 130, 1000), places.items(), strict=True)
    )
    svg = charts.scatter(charts.Scatter(ident="a", title="", points=points, x_label="ms", y_label="HRI"))
    name, bar = shapes(svg, "halo-text")[0], shapes(svg, "whiskers")[0]
    assert name.right <= bar.left or bar.right <= name.left


def test_bars_of_twenty_measures_and_twelve_experiments_have_room_in_rows() -> None:
    many = tuple(Series(f"e{n}", tuple(Estimate(n / 12, n / 13, n / 11) for _ in range(20))) for n in range(12))
    svg = charts.bars(
        charts.Bars(ident="a", title="", categories=tuple(f"measure_{n}@5" for n in range(20)), series=many)
    )
    bars = [shape for shape in shapes(svg, "area", "rect") if shape.title]
    assert len(bars) == 240
    assert min(bar.right - bar.left for bar in bars) >= 5
    assert len({round(bar.bottom, 1) for bar in bars}) == 4


@_few
@given(_positive)
def test_slices_take_their_share_of_the_circle(values: list[float]) -> None:
    svg = charts.pie(
        charts.Pie(ident="a", title="", slices=tuple(PieSlice(f"c{n}", value) for n, value in enumerate(values)))
    )
    shares = [value / sum(values) for value in values]
    if len(values) > 1 and max(shares) < 1 - 1e-9:
        assert arcs(svg) == pytest.approx(shares, abs=2e-4)
        assert len(texts(svg)) == 2 * len(values)


def test_one_slice_is_a_circle_and_slices_of_nothing_are_left_out_but_keep_their_colour() -> None:
    svg = charts.pie(
        charts.Pie(ident="a", title="", slices=(PieSlice("none", 0), PieSlice("all", 5), PieSlice("nothing", 0)))
    )
    assert [(shape.tag, shape.classes[-1]) for shape in shapes(svg, "area")] == [("circle", "stroke-1")]
    assert texts(svg) == ["100%", "all"]


@_few
@given(_positive)
def test_names_of_slices_do_not_cover_each_other(values: list[float]) -> None:
    svg = charts.pie(charts.Pie(ident="a", title="", slices=tuple(PieSlice(HOSTILE, value) for value in values * 3)))
    names = shapes(svg, "label")
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            assert (
                min(one.right, other.right) <= max(one.left, other.left) + 0.5
                or min(one.bottom, other.bottom) <= max(one.top, other.top) + 0.5
            )


@_few
@given(_positive)
def test_stacked_parts_fill_the_row_in_proportion(values: list[float]) -> None:
    parts = tuple(f"c{n}" for n in range(len(values)))
    svg = charts.stacked(charts.Stacked(ident="a", title="", parts=parts, rows=(StackedBar("e1", tuple(values)),)))
    pieces = [shape for shape in shapes(svg, "area", "rect") if shape.title]
    whole = pieces[-1].right - pieces[0].left
    for value, piece in zip(values, pieces, strict=True):
        assert piece.right - piece.left == pytest.approx(whole * value / sum(values), abs=0.02)
    assert pieces[-1].right == pytest.approx(shapes(svg, "axis", "line")[0].right, abs=0.03)


def test_shares_of_six_per_cent_are_written_inside() -> None:
    svg = charts.stacked(
        charts.Stacked(ident="a", title="", parts=("a", "b", "c"), rows=(StackedBar("e1", (6, 5.9, 88.1)),))
    )
    assert [text for text in texts(svg) if text.endswith("%")] == ["0%", "25%", "50%", "75%", "100%", "6%", "88%"]


@_few
@given(_positive, _positive)
def test_points_lie_as_their_values_do(xs: list[float], ys: list[float]) -> None:
    pairs = list(zip(xs, ys, strict=False))
    points = tuple(charts.Point("", Estimate(x), Estimate(y)) for x, y in pairs)
    svg = charts.scatter(charts.Scatter(ident="a", title="", points=points, x_label="x", y_label="y"))
    marks = [shape for shape in shapes(svg) if shape.title.startswith(":")]
    middle = [((mark.left + mark.right) / 2, (mark.top + mark.bottom) / 2) for mark in marks]
    first = [place for place, mark in enumerate(marks) if mark.tag == "circle"]
    assert rising([(pairs[place][0], middle[place][0]) for place in first])
    assert rising([(pairs[place][1], -middle[place][1]) for place in first])


@pytest.mark.parametrize(("xs", "log"), [((1, 51), True), ((1, 50), False), ((0, 51), False), ((-1, 51), False)])
def test_the_axis_is_logarithmic_where_values_are_far_apart(xs: tuple[float, float], log: bool) -> None:
    points = tuple(charts.Point("", Estimate(x), Estimate(1)) for x in xs)
    svg = charts.scatter(charts.Scatter(ident="a", title="", points=points, x_label="x", y_label="y"))
    assert (texts(svg).count("x (lower is better, logarithmic)") == 1) is log


@pytest.mark.parametrize("better_x", ["low", "high"])
@pytest.mark.parametrize("better_y", ["low", "high"])
def test_the_front_passes_its_points_and_ends_on_the_worse_sides(better_x: Better, better_y: Better) -> None:
    points = tuple(charts.Point("", Estimate(x), Estimate(y)) for x, y in ((1, 1.1), (2, 2.1), (1, 2.1), (2, 1.1)))
    chart = charts.Scatter(
        ident="a",
        title="",
        points=points,
        x_label="x",
        y_label="y",
        better_x=better_x,
        better_y=better_y,
    )
    front, frame = shapes(charts.scatter(chart), "front")[0], shapes(charts.scatter(chart), "axis")[0]
    ends = {"low": (frame.right, front.right), "high": (frame.left, front.left)}[better_x]
    assert ends[0] == ends[1]
    assert (front.bottom == frame.bottom) is (better_y == "high")


@_few
@given(st.lists(st.integers(0, 30), min_size=10, max_size=10).filter(any))
def test_columns_of_a_histogram_are_as_tall_as_their_counts(counts: list[int]) -> None:
    values = tuple(0.1 * place + 0.05 for place, count in enumerate(counts) for _ in range(count))
    chart = charts.Histogram(ident="a", title="", series=(Distribution("e1", values),), bins=10, include=(0, 1))
    heights = [shape.bottom - shape.top for shape in shapes(charts.histogram(chart), "area", "rect")]
    assert heights == pytest.approx([max(heights) * count / max(counts) for count in counts if count], abs=0.02)


def test_mean_and_95th_percentile_of_a_histogram() -> None:
    values = tuple(float(value) for value in range(1, 101))
    svg = charts.histogram(charts.Histogram(ident="a", title="", series=(Distribution("e1", values),)))
    assert {"mean 50.5", "p95 95.0", "n = 100"} <= set(texts(svg))


def test_marks_of_a_reliability_diagram_are_as_large_as_their_counts() -> None:
    points = tuple(charts.CurvePoint(0.1 * n, 0.1 * n, n) for n in range(1, 10))
    chart = charts.Curve(ident="a", title="", series=(charts.CurveLine("e1", points),), x_label="x", y_label="y")
    sizes = [mark.right - mark.left for mark in shapes(charts.curve(chart), "edge", "circle")[1:]]
    assert sizes == sorted(set(sizes))


def test_a_step_keeps_its_height_until_the_next_point() -> None:
    points = (charts.CurvePoint(0.2, 0.1), charts.CurvePoint(0.6, 0.5))
    straight, stepped = (
        charts.curve(
            charts.Curve(ident="a", title="", series=(charts.CurveLine("e1", points, steps),), x_label="x", y_label="y")
        )
        for steps in (False, True)
    )
    assert straight != stepped
    assert stepped.count(",") == straight.count(",") + 1


def test_of_many_points_some_are_marked() -> None:
    points = tuple(charts.CurvePoint(n / 200, n / 200) for n in range(200))
    svg = charts.curve(
        charts.Curve(ident="a", title="", series=(charts.CurveLine("e1", points),), x_label="x", y_label="y")
    )
    assert len(shapes(svg, "edge", "circle")) == 1 + 6


@_few
@given(st.lists(st.floats(0, 1), min_size=2, max_size=10, unique=True))
def test_the_value_of_an_interval_bar_moves_with_the_value(values: list[float]) -> None:
    pairs = []
    for value in values:
        svg = charts.interval_bar(charts.IntervalBar(ident="a", title="", value=Estimate(value), tone="good"))
        pairs.append((value, shapes(svg, "tone", "circle")[0].left))
    assert rising(pairs)


def test_an_open_end_fades_to_the_edge_and_a_known_end_has_a_cap() -> None:
    def drawn(value: Estimate) -> tuple[int, float]:
        svg = charts.interval_bar(charts.IntervalBar(ident="a", title="", value=value, tone="good"))
        return len(shapes(svg, "tone-line", "line")), round(max(shape.right for shape in shapes(svg, "tone")), 2)

    assert drawn(Estimate(0.5, 0.4, 0.6)) == (2, 94.8)
    assert drawn(Estimate(0.5, 0.4, None)) == (1, 154.0)
    assert drawn(Estimate(0.5)) == (0, 84.0)


@pytest.mark.parametrize(("better", "side"), [("high", 1), ("low", -1)])
def test_the_flag_of_a_threshold_points_to_the_good_side(better: Better, side: int) -> None:
    bar = charts.IntervalBar(ident="a", title="", value=Estimate(0.2), threshold=0.5, better=better)
    (flag,) = shapes(charts.interval_bar(bar), "ink-fill")
    assert (flag.left + flag.right) / 2 == 80 + 3 * side


def test_tones_differ_by_shape() -> None:
    drawn = {
        tone: [
            shape.tag
            for shape in shapes(
                charts.interval_bar(charts.IntervalBar(ident="a", title="", value=Estimate(0.2), tone=tone))
            )
        ]
        for tone in ("good", "bad")
    }
    assert drawn == {"good": ["line", "circle"], "bad": ["line", "line", "line"]}


def test_what_is_beyond_the_span_is_drawn_at_its_edge() -> None:
    svg = charts.interval_bar(charts.IntervalBar(ident="a", title="", value=Estimate(9, 8, 10), threshold=-5))
    assert all(0 <= shape.left <= shape.right <= view_box(svg)[0] for shape in shapes(svg))
