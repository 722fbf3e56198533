"""Geometry says what the numbers say: rising, in proportion, all of it there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import inf, nan
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from rag_harness.page import charts
from rag_harness.page.charts import Distribution, Estimate, PieSlice, Point, Series, StackedBar, pareto, stylesheet
from rag_harness.page.charts.plots import Better
from tests.unit.page.charts.examples import ANY, EXAMPLES, HOSTILE
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
def test_marks_of_dots_lie_as_their_values_do(values: list[float]) -> None:
    rows = tuple(charts.Dot(f"e{place}", Estimate(value), 0) for place, value in enumerate(values))
    marks = shapes(charts.dots(charts.Dots(ident="a", title="", rows=rows)), "edge", "circle")
    assert rising([(value, mark.left) for value, mark in zip(values, marks, strict=True)])


def test_the_interval_of_a_dot_goes_from_its_low_to_its_high_end() -> None:
    rows = (charts.Dot("e1", Estimate(0.5, 0.25, 1.0)), charts.Dot("e2", Estimate(0.5)))
    svg = charts.dots(charts.Dots(ident="a", title="", rows=rows, include=(0, 1)))
    ticks = [shape.left for shape in shapes(svg, "grid", "line")]
    bar = [shape for shape in shapes(svg, "whiskers", "line") if shape.right - shape.left > 1]
    assert [(shape.left, shape.right) for shape in bar] == [(ticks[1], ticks[-1])]


def test_long_names_of_rows_stand_above_their_marks() -> None:
    def places(name: str) -> tuple[float, float, float]:
        rows = (charts.Dot(name, Estimate(0.5)), charts.Dot("e2", Estimate(0.5)))
        svg = charts.dots(charts.Dots(ident="a", title="", rows=rows, include=(0, 1)))
        text, mark = next(s for s in shapes(svg, "label")), next(s for s in shapes(svg, "edge"))
        return text.right, text.bottom, mark.top if text.bottom < mark.top else mark.left

    right, _, left = places("e1")
    assert right < left
    right, bottom, top = places("an experiment with a name of " * 5)
    assert bottom < top
    assert right <= 340


def test_a_series_has_the_colour_that_it_is_given_in_every_chart() -> None:
    def classes(svg: str) -> set[str]:
        return {name for shape in shapes(svg) for name in shape.classes if name.startswith(("fill-", "stroke-"))}

    one: dict[str, dict[str, Any]] = {
        "dots": {"rows": (charts.Dot("e6", Estimate(0.5, 0.4, 0.6), 5),)},
        "lines": {"categories": ("a", "b"), "series": (Series("e6", (Estimate(1), Estimate(2)), 5),)},
        "scatter": {"points": (charts.Point("e6", Estimate(1), Estimate(1), 5),)},
        "histogram": {"series": (Distribution("e6", (0.5,), 5),)},
        "curve": {"series": (charts.CurveLine("e6", (charts.CurvePoint(0.5, 0.5),), colour=5),)},
        "pie": {"slices": (PieSlice("e6", 1, 5),)},
        "stacked": {"parts": ("x",), "rows": (StackedBar("e6", (1,)),), "colours": (5,)},
    }
    for kind, given_ in one.items():
        draw, chart = EXAMPLES[kind]
        assert {name[-1] for name in classes(draw(replace(chart, **given_)))} == {"5"}, kind


@pytest.mark.parametrize("kind", ["lines", "histogram", "curve"])
def test_many_series_apart_have_the_axes_of_all(kind: str) -> None:
    draw, chart = EXAMPLES[kind]
    spread = {
        "lines": (Series("e1", (Estimate(0.1), None)), Series("e2", (Estimate(70, 0, 90), Estimate(1)))),
        "histogram": (Distribution("e1", (0.1, 0.1)), Distribution("e2", (0.2, 70.0))),
        "curve": tuple(charts.CurveLine(name, (charts.CurvePoint(0.5, 0.5),)) for name in ("e1", "e2")),
    }
    small = [draw(each) for each in replace(chart, series=spread[kind]).apart()]
    assert [view_box(svg)[0] for svg in small] == [164, 164]
    axes = [[text for text in texts(svg) if text.strip("0123456789.,%") == ""] for svg in small]
    assert axes[0] == axes[1]
    assert ["e1" in texts(small[0]), "e2" in texts(small[1])] == [True, True]
    assert len({re.search(r'id="([^"]+)-title"', svg)[1] for svg in small}) == 2  # type: ignore[index]
    columns = [[shape.bottom - shape.top for shape in shapes(svg, "area", "rect")] for svg in small]
    assert kind != "histogram" or max(columns[0]) == pytest.approx(2 * max(columns[1]), abs=0.02)


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


@pytest.mark.parametrize(("count", "named"), [(8, 8), (9, 1)])
def test_of_many_points_only_those_on_the_front_are_named(count: int, named: int) -> None:
    points = tuple(charts.Point(f"e{n}", Estimate(1 + n), Estimate(-n)) for n in range(count))
    svg = charts.scatter(charts.Scatter(ident="a", title="", points=points, x_label="ms", y_label="HRI"))
    assert len(shapes(svg, "halo-text")) == named
    assert len([shape for shape in shapes(svg) if shape.title.startswith("e")]) == count


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
    drawn = [(shape.tag, shape.classes[-1]) for shape in shapes(svg, "area")]
    assert drawn == [("circle", "stroke-1"), ("rect", "stroke-1")], "the part, and its sample in the list"
    assert texts(svg) == ["100%", "all"]


def test_names_of_slices_stand_below_each_other_in_their_order() -> None:
    slices = tuple(PieSlice(f"kind {n}", 30 - n) for n in range(20))
    svg = charts.pie(charts.Pie(ident="a", title="", slices=slices))
    names = [shape for shape in shapes(svg, "label") if "strong" not in shape.classes]
    assert [text for text in texts(svg) if text.startswith("kind")] == [one.name for one in slices]
    assert all(after.top >= before.bottom for before, after in pairwise(names))
    assert min(name.left for name in names) > max(shape.right for shape in shapes(svg, "area", "path"))


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


def test_shares_are_written_where_they_have_room() -> None:
    svg = charts.stacked(
        charts.Stacked(ident="a", title="", parts=("a", "b", "c"), rows=(StackedBar("e1", (12, 16, 72)),))
    )
    assert [text for text in texts(svg) if text.endswith("%")] == ["0%", "25%", "50%", "75%", "100%", "16%", "72%"]
    plates, pieces = shapes(svg, "plate"), [shape for shape in shapes(svg, "area", "rect") if shape.title][1:]
    for plate, piece in zip(plates, pieces, strict=True):
        assert piece.left + 3 <= plate.left < plate.right <= piece.right - 3


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


@pytest.mark.parametrize(
    ("span", "more", "ticks"),
    [
        ((0.0, 1.0), {}, ["0.0", "0.5", "1.0"]),
        ((0.0, 84.0), {"unit": "ms"}, ["0", "50", "100", "ms"]),
        ((-0.18, 0.18), {"is_signed": True, "unit": "difference to e2"}, ["−0.2", "0.0", "+0.2", "difference to e2"]),
    ],
)
def test_an_interval_bar_has_its_scale_below_it(
    span: tuple[float, float], more: dict[str, Any], ticks: list[str]
) -> None:
    bar = charts.IntervalBar(ident="a", title="", value=Estimate(0.1), span=span, **more)
    svg = charts.interval_bar(bar)
    assert texts(svg) == ticks
    zero = next(shape for shape in shapes(svg, "grid") if shape.top > 0 and shape.left > 5)
    told = shapes(svg, "axis-label")
    assert all(one.right < other.left for one, other in pairwise(told))
    assert zero.bottom < told[0].top


def test_tones_differ_by_shape() -> None:
    drawn = {
        tone: [
            shape.tag
            for shape in shapes(
                charts.interval_bar(charts.IntervalBar(ident="a", title="", value=Estimate(0.2), tone=tone)),
                f"tone-{tone}",
            )
        ]
        for tone in ("good", "bad")
    }
    assert drawn == {"good": ["line", "circle"], "bad": ["line", "line", "line"]}


def test_what_is_beyond_the_span_is_drawn_at_its_edge() -> None:
    svg = charts.interval_bar(charts.IntervalBar(ident="a", title="", value=Estimate(9, 8, 10), threshold=-5))
    assert all(0 <= shape.left <= shape.right <= view_box(svg)[0] for shape in shapes(svg))


# What holds of every chart, whatever it is given.

_ALL = sorted(EXAMPLES)
every_chart = pytest.mark.parametrize("kind", _ALL)


def example(kind: str) -> str:
    draw, chart = EXAMPLES[kind]
    return draw(chart)


@every_chart
def test_looks_as_it_did(kind: str, snapshot: SnapshotAssertion) -> None:
    assert example(kind).replace("><", ">\n<") == snapshot


@every_chart
@settings(max_examples=15)
@given(data=st.data())
def test_all_that_is_drawn_lies_in_the_view_box(kind: str, data: st.DataObject) -> None:
    assert_inside(EXAMPLES[kind][0](data.draw(ANY[kind])))


def assert_inside(svg: str) -> None:
    width, height = view_box(svg)
    for shape in shapes(svg):
        assert shape.left >= -0.6, shape
        assert shape.right <= width + 0.6, shape
        assert shape.top >= -0.6, shape
        assert shape.bottom <= height + 0.6, shape


@every_chart
@settings(max_examples=6)
@given(data=st.data())
def test_equal_charts_are_equal_bytes_with_nothing_of_their_own_to_style_or_run(kind: str, data: st.DataObject) -> None:
    chart = data.draw(ANY[kind])
    svg = EXAMPLES[kind][0](chart)
    assert svg == EXAMPLES[kind][0](replace(chart))
    root = ElementTree.fromstring(svg)
    allowed = {
        "svg",
        "g",
        "defs",
        "pattern",
        "title",
        "desc",
        "text",
        "line",
        "rect",
        "circle",
        "path",
        "polygon",
        "polyline",
    }
    for element in root.iter():
        assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in allowed
        assert not {name for name in element.attrib if name == "style" or name.startswith("on") or "href" in name}
    svg.encode("utf-8")


def test_is_an_image_with_a_name_and_a_description() -> None:
    for kind in _ALL:
        root = ElementTree.fromstring(example(kind))
        assert root.attrib["role"] == "img", kind
        named = root.attrib["aria-labelledby"].split()
        assert [child.attrib.get("id") for child in root[:2]] == named, kind
        assert [root[0].text, bool(root[1].text)] == [EXAMPLES[kind][1].title, True], kind


def test_ids_are_made_of_the_ident_and_what_they_name_is_there() -> None:
    for kind, (draw, chart) in EXAMPLES.items():
        svg = draw(replace(chart, ident="other-1"))
        ids = re.findall(r' id="([^"]+)"', svg)
        assert len(ids) == len(set(ids)), kind
        assert [name for name in ids if not name.startswith("other-1-")] == [], kind
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(ids), kind
        assert draw(replace(chart, ident="a")) == svg.replace("other-1-", "a-"), kind


def test_a_description_of_ones_own_is_read_aloud() -> None:
    drawn = {kind: draw(replace(chart, desc="mine")) for kind, (draw, chart) in EXAMPLES.items()}
    assert {kind: ElementTree.fromstring(svg)[1].text for kind, svg in drawn.items()} == dict.fromkeys(EXAMPLES, "mine")


@pytest.mark.parametrize("ident", ["", "1", 'a" onload="x', "a b", "é"])
def test_an_ident_that_is_no_id_is_refused(ident: str) -> None:
    for kind, (draw, chart) in EXAMPLES.items():
        try:
            draw(replace(chart, ident=ident))
        except ValueError as refused:
            said = str(refused)
        else:
            said = "it is drawn"
        assert "an ident is a letter, then letters" in said, kind


def test_texts_have_11_pixels_on_a_screen_of_360() -> None:
    """The page's margins take 29 of them. A bar of a table keeps its size."""
    drawn = {kind: example(kind) for kind in _ALL}
    sizes = {kind: [float(size) for size in re.findall(r'font-size="([^"]+)"', svg)] for kind, svg in drawn.items()}
    least = {kind: min(sizes[kind]) * min(1.0, (360 - 29) / view_box(svg)[0]) for kind, svg in drawn.items()}
    assert {kind: pixels for kind, pixels in least.items() if pixels < 11} == {}


def test_every_class_has_its_style() -> None:
    used = {name for kind in _ALL for shape in shapes(example(kind)) for name in shape.classes}
    structural = {
        "lines",
        "dots",
        "pie",
        "stacked",
        "scatter",
        "staircase",
        "histogram",
        "curve",
        "heat-map",
        "legend",
        "whiskers",
        "label",
        "cell-text",
    }
    assert used - structural - set(re.findall(r"\.([a-z][a-z0-9-]*)", stylesheet())) == set()


def test_hostile_text_is_text() -> None:
    chart = charts.Lines(
        ident="a", title=HOSTILE, categories=(HOSTILE,), series=(Series(HOSTILE, (Estimate(1),)),), y_label=HOSTILE
    )
    svg = charts.lines(chart)
    assert "<script" not in svg
    assert "&lt;script&gt;" in svg
    assert (
        ElementTree.fromstring(svg)[0].text
        == "</title></svg><script>alert(1)</script>\"'&\ufffd\ufffd\ufffd javascript:"
    )


_EMPTY: dict[str, dict[str, Any]] = {
    "lines": {"categories": (), "series": ()},
    "dots": {"rows": (charts.Dot("e1", None),)},
    "pie": {"slices": (charts.PieSlice("none", 0),)},
    "stacked": {"rows": ()},
    "scatter": {"points": ()},
    "histogram": {"series": (charts.Distribution("e1", ()),)},
    "curve": {"series": ()},
    "heat_map": {"values": ((None, None), (None, None))},
}


def test_a_value_of_very_many_digits_stays_in_the_drawing() -> None:
    heads = tuple("" for _ in range(7))
    chart = charts.HeatMap(columns=heads, rows=("",), values=((*[None] * 5, 1e15, 5e-324),), ident="a", title="")
    assert_inside(EXAMPLES["heat_map"][0](chart))


@pytest.mark.parametrize("kind", sorted(_EMPTY))
def test_no_data_is_said(kind: str) -> None:
    draw, chart = EXAMPLES[kind]
    assert texts(draw(replace(chart, **_EMPTY[kind]))) == ["No data: nothing was measured."]


@pytest.mark.parametrize("name", ["e", "a long name of an experiment that goes on "])
@pytest.mark.parametrize("kind", ["lines", "dots", "heat_map", "stacked"])
def test_twelve_experiments_and_twenty_measures_lie_in_the_view_box(kind: str, name: str) -> None:
    many, heads = range(12), tuple(f"{name}{place}" for place in range(20))
    rows = tuple(Series(f"{name}{row}", tuple(Estimate(row, row - 1, row + 1) for _ in heads)) for row in many)
    values = tuple((float(row),) * 20 for row in many)
    given_: dict[str, dict[str, Any]] = {
        "lines": {"categories": heads, "series": rows},
        "dots": {"rows": tuple(charts.Dot(row.name, row.values[0]) for row in rows)},
        "heat_map": {"columns": heads, "rows": tuple(row.name for row in rows), "values": values},
        "stacked": {"parts": heads, "rows": tuple(charts.StackedBar(row.name, values[1]) for row in rows)},
    }
    draw, chart = EXAMPLES[kind]
    assert_inside(draw(replace(chart, **given_[kind])))


# What cannot be drawn is refused with the chart and the series named.

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


# The Pareto front, against its definition.

_small = st.integers(-3, 3).map(float)
_points = st.lists(st.tuples(_small, _small), max_size=15)
_better = st.sampled_from(["low", "high"])


def beats(one: Point, other: Point, better_x: str, better_y: str) -> bool:
    x = (one.x.value - other.x.value) * (1 if better_x == "high" else -1)
    y = (one.y.value - other.y.value) * (1 if better_y == "high" else -1)
    return x >= 0 and y >= 0 and (x > 0 or y > 0)


@given(_points, _better, _better)
def test_the_front_is_who_nobody_beats_by_rising_x(places: list[tuple[float, float]], x: Better, y: Better) -> None:
    points = [Point(str(place), Estimate(a), Estimate(b)) for place, (a, b) in enumerate(places)]
    unbeaten = {one.name for one in points if not any(beats(other, one, x, y) for other in points)}
    front = pareto(points, x, y)
    assert {one.name for one in front} == unbeaten
    assert [one.x.value for one in front] == sorted(one.x.value for one in front)


@pytest.mark.parametrize("count", [1, 3])
def test_equals_do_not_beat_each_other(count: int) -> None:
    same = [Point(str(place), Estimate(1), Estimate(2)) for place in range(count)]
    assert pareto(same, "low", "high") == same
