"""Ticks are round, hold all values and can be told apart; numbers are written as a reader expects."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_harness.page.charts import HeatMap, heat_map, stylesheet
from rag_harness.page.charts.distributions import bucket
from rag_harness.page.charts.frame import (
    Axis,
    Box,
    counted,
    dash,
    fills,
    legend_sample,
    level,
    linear,
    logarithmic,
    marker,
    short,
    wide_apart,
)
from rag_harness.page.charts.svg import broken, label, shortened, text_width
from tests.unit.page.charts.shapes import shapes, texts

# Ticks are round, hold all values and can be told apart; numbers are written as a reader expects.

_numbers = st.one_of(st.floats(-1e15, 1e15), st.floats(-1, 1), st.floats(0, 1e-9))


@given(st.lists(_numbers, min_size=1, max_size=10), st.booleans())
def test_a_linear_axis_holds_its_values_between_few_different_ticks(values: list[float], percent: bool) -> None:
    axis = linear(values, percent=percent)
    room = 1e-6 * (axis.high - axis.low)
    assert axis.low - room <= min(values)
    assert axis.high + room >= max(values)
    assert 2 <= len(axis.ticks) <= 8
    assert len(set(axis.labels)) == len(axis.labels)
    place = axis.scale(0, 100)
    assert [place(axis.low), place(axis.high)] == [0, 100]


@given(st.lists(st.floats(1e-90, 1e15), min_size=1, max_size=10))
def test_a_logarithmic_axis_holds_its_values(values: list[float]) -> None:
    axis = logarithmic(values)
    assert axis.low <= min(values) * (1 + 1e-9)
    assert axis.high >= max(values) * (1 - 1e-9)
    assert 1 <= len(axis.ticks) <= 7
    place = axis.scale(0, 100)
    assert place(axis.low) == 0
    assert place(axis.high) == pytest.approx(100)


@pytest.mark.parametrize(
    ("values", "percent", "labels"),
    [
        ([0, 1], False, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0.1, 0.9], True, ["0%", "20%", "40%", "60%", "80%", "100%"]),
        ([-0.12, 0.2], False, ["−0.2", "−0.1", "0.0", "0.1", "0.2"]),
        ([0, 2400], False, ["0", "500", "1,000", "1,500", "2,000", "2,500"]),
        ([0.101, 0.109], True, ["10.0%", "10.2%", "10.4%", "10.6%", "10.8%", "11.0%"]),
        ([], False, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        ([0, 0], False, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
    ],
)
def test_ticks_are_round(values: list[float], percent: bool, labels: list[str]) -> None:
    assert list(linear(values, percent=percent).labels) == labels


def test_equal_values_have_room_on_both_sides() -> None:
    axis = linear([5.0, 5.0])
    assert axis.low < 5 < axis.high


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([120, 900], ["100", "200", "500", "1,000"]),
        ([0.0003, 0.02], ["0.0002", "0.0005", "0.001", "0.002", "0.005", "0.01", "0.02"]),
        ([1e-5, 1], ["1e−5", "0.0001", "0.001", "0.01", "0.1", "1"]),
    ],
)
def test_ticks_of_a_logarithmic_axis(values: list[float], labels: list[str]) -> None:
    assert list(logarithmic(values).labels) == labels


@pytest.mark.parametrize("values", [[], [0.0], [-1.0, 5.0]])
def test_no_logarithm_of_nothing(values: list[float]) -> None:
    assert not wide_apart(values)
    with pytest.raises(ValueError, match="values above 0"):
        logarithmic(values)


@pytest.mark.parametrize(
    ("value", "percent", "text"),
    [
        (0.8234, False, "0.82"),
        (0.0, False, "0.00"),
        (-0.05, False, "−0.05"),
        (0.00123, False, "0.0012"),
        (12.34, False, "12.3"),
        (1234.5, False, "1,234"),
        (99.96, False, "100"),
        (-0.00001, False, "−1e−5"),
        (2.5e12, False, "2.5e12"),
        (0.456, True, "46%"),
        (0.0456, True, "4.6%"),
        (-0.5, True, "−50%"),
        (0.0, True, "0%"),
        (1e9, True, "1e11%"),
    ],
)
def test_numbers_for_labels(value: float, percent: bool, text: str) -> None:
    assert short(value, percent=percent) == text


def test_numbers_of_one_table_have_as_many_decimals() -> None:
    assert [short(value, among=0.3) for value in (0.3, 0.0042, -0.0042)] == ["0.30", "0.00", "0.00"]


def test_counts_have_no_decimals() -> None:
    assert [counted(value) for value in (3, 12000.0, 0.5)] == ["3", "12,000", "0.50"]


@given(st.text(max_size=60), st.floats(20, 300))
def test_a_shortened_text_fits_and_begins_like_the_whole(text: str, room: float) -> None:
    short_one = shortened(text, room)
    assert text_width(short_one) <= max(room, text_width("検…"))
    if short_one.endswith("…") and "\ufffd" not in short_one:
        assert " ".join(text.split()).startswith(short_one[:-1]) or short_one in text


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("recall", ["recall"]),
        ("answer relevancy", ["answer", "relevancy"]),
        ("context_precision", ["context_", "precision"]),
        ("incomprehensibilities", None),
        ("one two three four five six seven", None),
    ],
)
def test_names_are_broken_in_two_where_that_does(text: str, lines: list[str] | None) -> None:
    assert broken(text, 85) == lines


def test_letters_of_other_scripts_have_their_width() -> None:
    assert text_width("検索") > text_width("ab")
    assert text_width("e\u0301") == text_width("e")


@pytest.mark.parametrize(("length", "shown"), [(5, 5), (20, 3)])
def test_labels_of_a_level_axis_that_would_touch_are_left_out(length: int, shown: int) -> None:
    ticks = (0, 0.25, 0.5, 0.75, 1)
    drawn = level(Axis(0, 1, ticks, ("n" * length,) * 5), Box(50, 0, 600, 100), 640)
    assert (drawn.count("<line"), drawn.count("<text")) == (5, shown)


def test_the_whole_of_a_shortened_text_is_its_title() -> None:
    assert "<title>answer &amp; context</title>answe…<" in label(0, 0, "answer & context", 60)
    assert "<title>" not in label(0, 0, "answer", 60)


# The colours of charts.css: readable on both grounds, complete in both, light on paper.

_CSS = stylesheet()
_BLOCKS = re.findall(r":root \{([^}]*)\}", _CSS)
_SCHEMES = {
    name: dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6})", block))
    for name, block in zip(("light", "dark"), _BLOCKS, strict=True)
}
_GROUND = {"light": "#ffffff", "dark": "#14171c"}
_MARKS = [f"c{place}" for place in range(8)] + ["good", "bad", "unsure", "chart-axis"]
_TEXTS = ["chart-text", "chart-quiet"]
schemes = pytest.mark.parametrize("scheme", sorted(_SCHEMES))


def luminance(colour: str) -> float:
    """WCAG 2.2: relative luminance of an sRGB colour."""
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_the_contrast_is_that_of_wcag() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def too_low(pairs: Iterable[tuple[str, str, str]], least: float) -> list[str]:
    """Return the colours of a scheme that have less contrast than that to another colour of it."""
    found = [(scheme, name, contrast(_SCHEMES[scheme][name], other)) for scheme, name, other in pairs]
    return [f"{name} of the {scheme} scheme: {each:.2f}" for scheme, name, each in found if each < least]


def test_marks_are_seen() -> None:
    assert too_low(((scheme, name, _GROUND[scheme]) for scheme in _SCHEMES for name in _MARKS), 3) == []


def test_texts_are_read() -> None:
    assert too_low(((scheme, name, _GROUND[scheme]) for scheme in _SCHEMES for name in _TEXTS), 4.5) == []
    assert {scheme: colours["chart-ground"] for scheme, colours in _SCHEMES.items()} == _GROUND


def test_numbers_in_cells_are_read() -> None:
    names = [f"{colours}{place}" for colours in ("seq", "div") for place in range(9)]
    cells = [(scheme, name, colours[f"{name}-text"]) for scheme, colours in _SCHEMES.items() for name in names]
    assert too_low(cells, 4.5) == []


@schemes
def test_sequential_colours_go_one_way_and_diverging_ones_away_from_the_middle(scheme: str) -> None:
    away = 1 if scheme == "dark" else -1
    sequential = [away * luminance(_SCHEMES[scheme][f"seq{place}"]) for place in range(9)]
    diverging = [away * luminance(_SCHEMES[scheme][f"div{place}"]) for place in range(9)]
    assert sequential == sorted(sequential)
    assert diverging[4:] == sorted(diverging[4:])
    assert diverging[:5] == sorted(diverging[:5], reverse=True)


def test_both_schemes_name_the_same_colours_and_every_one_that_is_used() -> None:
    assert set(_SCHEMES["light"]) == set(_SCHEMES["dark"])
    assert set(re.findall(r"var\(--([\w-]+)\)", _CSS)) - {"hatch"} <= set(_SCHEMES["light"])


def test_the_dark_colours_are_for_screens_alone() -> None:
    assert re.findall(r"@media ([^{]*) \{\s*:root", _CSS) == ["screen and (prefers-color-scheme: dark)"]
    assert "@media print" in _CSS


def test_the_stylesheet_asks_for_nothing_from_elsewhere() -> None:
    assert "url(" not in _CSS
    assert "@import" not in _CSS


@schemes
def test_the_colours_of_series_differ(scheme: str) -> None:
    assert len({_SCHEMES[scheme][f"c{place}"] for place in range(8)}) == 8


def test_series_differ_without_colour_in_marks_and_dashes_and_fills() -> None:
    def uncoloured(svg: str) -> str:
        return re.sub(r"(fill|stroke)-\d", "", re.sub(r'id="[^"]*"', "", svg))

    assert len({uncoloured(marker(place, 0, 0)) for place in range(16)}) == 16
    assert len({uncoloured(legend_sample(place, 0, 0)) for place in range(16)}) == 16
    assert len({(place % 8, dash(place)) for place in range(64)}) == 64
    assert len({uncoloured(fills("a", [place])) for place in range(8)}) == 8
    assert len({re.sub(r'id="[^"]*"', "", fills("a", [place])) for place in range(64)}) == 64


# Cells of a heat map: their numbers, and their colours by value.


def colours(values: tuple[float | None, ...], kind: Literal["sequential", "diverging"]) -> list[str]:
    """Return the bucket of each cell, without those of the key."""
    names = tuple(f"c{place}" for place in range(len(values)))
    svg = heat_map(HeatMap(ident="a", title="", rows=("e1",), columns=names, values=(values,), colours=kind))
    return [shape.classes[-1].removeprefix("heat-") for shape in shapes(svg, "cell", "rect") if shape.title]


def test_sequential_colours_go_from_the_least_to_the_largest() -> None:
    assert colours((0.2, 0.6, 1.0, None), "sequential") == ["0", "4", "8", "none"]


def test_maps_of_one_span_have_one_colour_for_a_value() -> None:
    chart = HeatMap(ident="a", title="", rows=("e1",), columns=("a", "b"), values=((0.2, 0.6),), span=(0.2, 1.0))
    cells = [shape for shape in shapes(heat_map(chart), "cell", "rect") if shape.title]
    assert [shape.classes[-1] for shape in cells] == ["heat-0", "heat-4"]
    assert texts(heat_map(chart))[-2:] == [".20", "1.0"], "the key has the ends of the span"


def test_a_name_of_a_slice_is_whole() -> None:
    name = "product_manual"
    svg = heat_map(HeatMap(ident="a", title="", rows=(name,), columns=("a", "b"), values=((0.2, 0.6),)))
    assert "…" not in svg


def test_a_group_is_named_once_above_its_rows() -> None:
    rows, groups = ("easy", "hard", "2", "3"), ("difficulty", "difficulty", "hops", "hops")
    chart = HeatMap(ident="a", title="", rows=rows, columns=("x",), values=((0.1,),) * 4, groups=groups)
    told = [text for text in texts(heat_map(chart)) if text in (*rows, *groups)]
    assert told == ["difficulty", "easy", "hard", "hops", "2", "3"]
    cells = [shape for shape in shapes(heat_map(chart), "cell", "rect") if shape.title]
    assert cells[2].top - cells[1].top == 2 * (cells[1].top - cells[0].top)


def test_nine_measures_of_shares_stand_in_one_block() -> None:
    columns, row = tuple(f"measure_{place}@5" for place in range(9)), (0.25, 1.0, 0.999) * 3
    svg = heat_map(HeatMap(ident="a", title="", rows=("calculation",), columns=columns, values=(row,)))
    assert len({cell.top for cell in shapes(svg, "cell", "rect") if cell.title}) == 1
    assert {"…" in text for text in texts(svg)} == {False}


def test_diverging_colours_part_at_zero() -> None:
    assert colours((-0.09, 0.0, 0.09, 0.3, -0.3), "diverging") == ["3", "4", "5", "8", "0"]


def test_both_sides_of_zero_are_of_one_measure() -> None:
    assert colours((-0.09, 0.0, 0.3), "diverging") == ["3", "4", "8"]


def test_buckets_are_equally_wide() -> None:
    assert [bucket(value, (0, 0.9)) for value in (0.08, 0.12, 0.18, 0.42, 0.48, 0.52, 0.78, 0.82)] == [
        0,
        1,
        1,
        4,
        4,
        5,
        7,
        8,
    ]


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=9))
def test_a_value_and_its_negative_are_equally_far_from_the_middle(values: list[float]) -> None:
    largest = max(abs(value) for value in values)
    for value in values:
        assert bucket(value, (-largest, largest)) + bucket(-value, (-largest, largest)) == 8


@pytest.mark.parametrize("kind", ["sequential", "diverging"])
def test_equal_values_have_one_colour(kind: Literal["sequential", "diverging"]) -> None:
    assert len(set(colours((0.5, 0.5, 0.5), kind))) == 1
    assert set(colours((0.0, 0.0), kind)) == {"4"}


@example([-1e9, -999999999.9999999])
@given(st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=9))
def test_buckets_never_fall_where_values_rise(values: list[float]) -> None:
    span = (min(values), max(values))
    found = [bucket(value, span) for value in sorted(values)]
    assert found == sorted(found)
    # The middle of two numbers that are nearly equal is rounded to one of them.
    assert {0, 8} <= set(found) or span[1] - span[0] < max(1e-100, 1e-12 * max(map(abs, span)))


def test_every_value_is_written_and_a_missing_one_is_a_dash() -> None:
    chart = HeatMap(ident="a", title="", rows=("e1",), columns=("x", "y", "z"), values=((0.256, None, -1.0),))
    assert texts(heat_map(chart))[4:7] == [".26", "–", "−1.0"]


def test_twenty_columns_stand_in_blocks_wide_enough_for_their_numbers() -> None:
    columns = tuple(f"measure_{place}@5" for place in range(20))
    svg = heat_map(HeatMap(ident="a", title="", rows=("e1",), columns=columns, values=((-0.25,) * 20,)))
    cells = [shape for shape in shapes(svg, "cell", "rect") if shape.title]
    numbers = shapes(svg, "cell-text")
    assert len({cell.top for cell in cells}) == 3
    assert all(cell.left < text.left < text.right < cell.right for cell, text in zip(cells, numbers, strict=True))
