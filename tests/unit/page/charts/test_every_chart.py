"""What holds of every chart, whatever it is given."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from rag_harness.page import charts
from rag_harness.page.charts import Estimate, Series, stylesheet
from tests.unit.page.charts.examples import ANY, EXAMPLES, HOSTILE
from tests.unit.page.charts.shapes import shapes, texts, view_box

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
