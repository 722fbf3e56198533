"""Cells of a heat map: their numbers, and their colours by value."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rag_harness.page.charts import HeatMap, heat_map
from rag_harness.page.charts.distributions import bucket
from tests.unit.page.charts.shapes import shapes, texts


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
