"""The colours of charts.css: readable on both grounds, complete in both, light on paper."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pytest

from rag_harness.page.charts import stylesheet
from rag_harness.page.charts.frame import dash, fills, legend_sample, marker

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
