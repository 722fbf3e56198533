"""A kind of answer has one colour and one pattern, in charts, in tables and in the list of trials."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rag_harness.evaluation.measures.judged import CATEGORIES
from rag_harness.page import charts
from rag_harness.page.estimates import kind_class, kind_fill
from tests.unit.page.charts.shapes import shapes

_STYLES = dict(re.findall(r"\.(kind-[\w-]+) \{([^}]*)\}", charts.stylesheet()))
_SCRIPT = Path(charts.__file__).parents[1] / "assets" / "page.js"
_TURNS = {"M-1,8": "135deg", "M-1,-1": "45deg", "M0,3.5": "0deg", "M3.5,0": "90deg"}
"""The begin of a hatch's path -> the direction across its lines."""


def drawn(kind: str) -> str:
    """Return a bar of this kind alone."""
    bar = charts.StackedBar("e1", (1,))
    return charts.stacked(charts.Stacked(ident="a", title="", parts=(kind,), rows=(bar,), colours=(kind_fill(kind),)))


@pytest.mark.parametrize("kind", CATEGORIES)
def test_a_swatch_beside_a_text_has_the_colour_and_the_pattern_of_the_charts(kind: str) -> None:
    style, svg = _STYLES[kind_class(kind)], drawn(kind)
    (piece,) = (shape for shape in shapes(svg, "area", "rect") if shape.title)
    (colour,) = (name.removeprefix("stroke-") for name in piece.classes if name.startswith("stroke-"))
    assert re.findall(r"color: var\(--c(\d)\)", style) == [colour]
    hatches = [turn for begin, turn in _TURNS.items() if f'd="{begin}' in svg]
    assert sorted(re.findall(r"\d+deg", style)) == sorted(hatches)


def test_no_two_kinds_look_alike_and_the_script_names_them_as_the_page_does() -> None:
    assert len({kind_fill(kind) for kind in CATEGORIES}) == len({*map(kind_class, CATEGORIES)}) == len(CATEGORIES)
    assert len({kind_fill(kind) % 8 for kind in CATEGORIES}) <= 8
    assert 'el("i.kind.kind-" + kind.toLowerCase().replaceAll(" ", "-"))' in _SCRIPT.read_text()
    assert (kind_class("Clean Pass"), kind_class("of a user's own")) == ("kind-clean-pass", "")
