"""Measures, shortens and breaks texts before they are drawn."""

from __future__ import annotations

import math
import re
import unicodedata
from functools import lru_cache

from rag_harness.page.charts.svg import SIZE, coordinate, escaped, tag, xml_text

SMALL = 12.0
TURN = 38.0
LINE = 17.0

# A tolerance: the room is often computed from the width of the same text.
_ROUNDING = 0.01
# Widths as shares of the font's size, for a wide sans serif (DejaVu Sans): most fonts need less.
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
