"""SVG as text: elements, measured and shortened labels, and the stylesheet of the charts."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

# Writes SVG as text: escaped, with short numbers, the same bytes for the same input.

CHART_WIDTH = 340.0
"""A screen of 360 pixels shows a chart at its own size, so that its smallest text has 11 pixels there."""
SMALL_WIDTH = 164.0
"""The width of one of many small charts: two are beside each other on such a screen."""
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


SMALL = 12.0
TURN = 38.0
LINE = 17.0

# A tolerance: the room is often computed from the width of the same text.
_ROUNDING = 0.01
# Widths in a wide sans serif (DejaVu Sans), as shares of the font's size: most fonts need less.
_NARROW, _USUAL, _CAPITAL, _WIDE, _FULL = 0.4, 0.62, 0.7, 0.96, 1.05


def text_width(text: str, size: float = SIZE) -> float:
    """Return the approximate width of a line of text, in units; rather too much than too little."""
    return size * sum(_share(char) for char in xml_text(text))


def shortened(text: str, room: float, size: float = SIZE) -> str:
    """Return the text, or as much of its beginning as fits with an ellipsis; at least one letter."""
    text = xml_text(text)
    if text_width(text, size) <= room + _ROUNDING:
        return text
    end = len(text) - 1
    while end > 1 and text_width(text[:end] + "…", size) > room:
        end -= 1
    return text[:end].rstrip() + "…"


def broken(text: str, room: float) -> list[str] | None:
    """Return the text in one or two lines that fit the room, broken after ' ', '_' or '-'; None where it needs more."""
    text = xml_text(text)
    if text_width(text) <= room + _ROUNDING:
        return [text]
    ends = [match.end() for match in re.finditer("[ _-]", text)]
    halves = [[text[:end].rstrip(), text[end:]] for end in ends]
    fitting = [half for half in halves if max(map(text_width, half)) <= room]
    return min(fitting, key=lambda half: max(map(text_width, half)), default=None)


def label(
    x: float,
    y: float,
    text: str,
    room: float = math.inf,
    *,
    anchor: str = "start",
    size: float | None = None,
    kind: str = "label",
) -> str:
    """Return a line of text on its baseline. A shortened text has the whole text as its title."""
    return _text(text, room, size, x=x, y=y, text_anchor=anchor, class_=kind)


def turned(x: float, y: float, text: str, room: float, *, degrees: float = -TURN, anchor: str = "end") -> str:
    """Return a line of text turned around its anchor; ``room`` is measured along the text."""
    transform = f"rotate({coordinate(degrees)} {coordinate(x)} {coordinate(y)})"
    return _text(text, room, SMALL, x=x, y=y, text_anchor=anchor, class_="label", transform=transform)


def drop(room: float) -> float:
    """Return the vertical extent of a turned text of this length."""
    return room * math.sin(math.radians(TURN)) + SMALL


def reach(across: float) -> float:
    """Return the longest possible turned text, given its horizontal room."""
    return across / math.cos(math.radians(TURN))


def _text(text: str, room: float, size: float | None, **attributes: str | float) -> str:
    shown = shortened(text, room, size or SIZE)
    whole = [tag("title", escaped(text))] if shown != xml_text(text) else []
    return tag("text", *whole, escaped(shown), **attributes, font_size=size)


@lru_cache(maxsize=4096)
def _share(char: str) -> float:
    if unicodedata.combining(char):
        return 0.0
    if unicodedata.east_asian_width(char) in "WF":
        return _FULL
    if char in "iljtfrI.,:;'|!()[] ·":
        return _NARROW
    if char in "mwMW%@—…=+<>~−±":
        return _WIDE
    return _CAPITAL if char.isupper() else _USUAL


# The colours of all charts on a page.


def stylesheet() -> str:
    """Return the CSS of the charts' classes, light and dark by the system, light in print."""
    return files(__package__).joinpath("charts.css").read_text(encoding="utf-8")
