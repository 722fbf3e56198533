"""Writes SVG as text: escaped, with short numbers, the same bytes for the same input."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass

CHART_WIDTH = 340.0
"""A screen of 360 pixels shows a chart at its own size, so that its smallest text has 11 pixels there."""
SMALL_WIDTH = 164.0
"""The width of one of many small charts: two stand beside each other on such a screen."""
SIZE = 13.0

_IDENT = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# Characters that XML forbids, and marks that would reverse the direction of text.
_UNWRITABLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


@dataclass(frozen=True, kw_only=True)
class Chart:
    """The common fields of all charts.

    ``ident`` is unique on the page: letters, digits, hyphens. ``title`` and ``desc`` are for screen readers. Where
    ``desc`` is empty, the chart describes itself. ``width`` is in units; texts have the same size in every width.
    """

    ident: str
    title: str
    desc: str = ""
    width: float = CHART_WIDTH


def document(chart: Chart, height: float, *parts: str, desc: str, kind: str) -> str:
    """Return the whole SVG, named by the chart's title and description.

    Raises:
        ValueError: the ident cannot be an id of HTML.
    """
    if not _IDENT.fullmatch(chart.ident):
        raise ValueError(f"{kind} chart {chart.ident!r}: an ident is a letter, then letters, digits, '-' or '_'.")
    head = (
        tag("title", escaped(chart.title), id=f"{chart.ident}-title"),
        tag("desc", escaped(chart.desc or desc), id=f"{chart.ident}-desc"),
    )
    return tag(
        "svg",
        *head,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {coordinate(chart.width)} {coordinate(height)}",
        width=chart.width,
        height=height,
        class_=f"chart {kind}",
        role="img",
        aria_labelledby=f"{chart.ident}-title {chart.ident}-desc",
        font_size=SIZE,
    )


def tag(name: str, *children: str, **attributes: str | float | None) -> str:
    """Return an element. ``class_`` is class, ``text_anchor`` is text-anchor; None is left out; children are SVG."""
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{_attribute(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(children)}</{name}>" if children else f"<{name}{written}/>"


def escaped(text: str) -> str:
    """Return text that is safe in HTML and XML, in one line. Forbidden characters become U+FFFD."""
    return html.escape(xml_text(text))


def xml_text(text: str) -> str:
    """Return the text in one line, without characters that XML forbids."""
    return _UNWRITABLE.sub("\ufffd", " ".join(text.split()))


def coordinate(value: float) -> str:
    """Return a coordinate with at most two decimals."""
    written = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if written == "-0" else written


def points(places: list[tuple[float, float]]) -> str:
    """Return the value of a ``points`` attribute."""
    return " ".join(f"{coordinate(x)},{coordinate(y)}" for x, y in places)


def _attribute(value: str | float) -> str:
    return escaped(value) if isinstance(value, str) else coordinate(value)
