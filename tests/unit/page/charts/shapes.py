"""What a chart draws, as rectangles: read from the SVG, with texts as wide as they are taken to be."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from rag_harness.page.charts.svg import text_width

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_NUMBER = r"-?\d+(?:\.\d+)?"


class Shape(NamedTuple):
    """A drawn element: its tag, its classes, its title, and the rectangle that it fills."""

    tag: str
    classes: list[str]
    title: str
    left: float
    top: float
    right: float
    bottom: float


def shapes(svg: str, kind: str = "", tag: str = "") -> list[Shape]:
    """Return the drawn shapes in their order, of a class or a tag where one is given."""
    found = _walk(ElementTree.fromstring(svg), [])
    return [shape for shape in found if (not kind or kind in shape.classes) and tag in ("", shape.tag)]


def view_box(svg: str) -> tuple[float, float]:
    """Return width and height."""
    left, top, width, height = map(float, ElementTree.fromstring(svg).attrib["viewBox"].split())
    assert (left, top) == (0, 0)
    return width, height


def texts(svg: str) -> list[str]:
    """Return the texts that are seen, without the titles of shortened ones."""
    found = ElementTree.fromstring(svg).iter(f"{_NAMESPACE}text")
    return [(element.text or "") + "".join(child.tail or "" for child in element) for element in found]


def arcs(svg: str) -> list[float]:
    """Return the share of the circle that each path with an arc takes."""
    return [
        _share(element.attrib["d"])
        for element in ElementTree.fromstring(svg).iter(f"{_NAMESPACE}path")
        if "A" in element.attrib["d"]
    ]


def _walk(element: ElementTree.Element, classes: list[str]) -> Iterator[Shape]:
    tag = element.tag.removeprefix(_NAMESPACE)
    if tag == "defs":
        return
    classes = classes + element.get("class", "").split()
    corners = _corners(tag, element)
    if corners:
        across, down = zip(*corners, strict=True)
        title = element.findtext(f"{_NAMESPACE}title") or ""
        yield Shape(tag, classes, title, min(across), min(down), max(across), max(down))
    for child in element:
        yield from _walk(child, classes)


def _corners(tag: str, element: ElementTree.Element) -> list[tuple[float, float]]:
    def at(name: str) -> float:
        return float(element.attrib[name])

    if tag == "line":
        return [(at("x1"), at("y1")), (at("x2"), at("y2"))]
    if tag == "rect":
        assert at("width") >= 0
        assert at("height") >= 0
        return [(at("x"), at("y")), (at("x") + at("width"), at("y") + at("height"))]
    if tag == "circle":
        return [(at("cx") - at("r"), at("cy") - at("r")), (at("cx") + at("r"), at("cy") + at("r"))]
    if tag in ("polygon", "polyline"):
        return [tuple(map(float, pair.split(","))) for pair in element.attrib["points"].split()]  # type: ignore[misc]
    if tag == "path":
        return _pairs(re.sub(r"A\S+ \d \d \d", "", element.attrib["d"]))
    return _text_corners(element) if tag == "text" else []


def _text_corners(element: ElementTree.Element) -> list[tuple[float, float]]:
    size = float(element.get("font-size") or 13)
    shown = (element.text or "") + "".join(child.tail or "" for child in element)
    wide, x, y = text_width(shown, size), float(element.attrib["x"]), float(element.attrib["y"])
    left = x - wide * {"start": 0.0, "middle": 0.5, "end": 1.0}[element.attrib["text-anchor"]]
    corners = [(left + dx, y + dy) for dx in (0, wide) for dy in (-0.8 * size, 0.25 * size)]
    turn = re.match(rf"rotate\(({_NUMBER}) ", element.get("transform", ""))
    angle = math.radians(float(turn[1])) if turn else 0.0
    return [
        (
            x + (across - x) * math.cos(angle) - (down - y) * math.sin(angle),
            y + (across - x) * math.sin(angle) + (down - y) * math.cos(angle),
        )
        for across, down in corners
    ]


def _pairs(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(rf"({_NUMBER}),({_NUMBER})", path)]


def _share(path: str) -> float:
    (x, y), (x1, y1), (x2, y2) = _pairs(re.sub(r"A\S+ \d \d \d", "", path))
    start, end = math.atan2(x1 - x, y - y1), math.atan2(x2 - x, y - y2)
    share = (end - start) / (2 * math.pi) % 1
    large = re.search(r"A\S+ \d (\d) ", path)
    assert large
    # A sliver's ends may be one point after rounding, as those of nearly the whole circle.
    return share if abs(share - int(large[1])) < 0.6 else 1 - share
