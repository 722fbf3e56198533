"""Lines of the terminal: a label, then text that is wrapped behind it."""

from __future__ import annotations

from textwrap import wrap
from typing import Literal, NamedTuple

Colour = Literal["", "red", "green", "yellow"]
LABEL = 9
"""Columns of a label."""
_HEAD, _END = 2, 3
"""Lines at the beginning and at the end of a text that is cut in its middle."""
TIE = "\N{NO-BREAK SPACE}"
"""A space that no line breaks at; it is printed as a space."""


class Line(NamedTuple):
    """A line of the terminal, with its colour."""

    text: str
    colour: Colour = ""


class LineWriter:
    """Wraps text behind a label."""

    def __init__(self, width: int) -> None:
        self.width = width

    def labelled(self, label: str, text: str, colour: Colour = "", most: int = 2) -> list[Line]:
        """Return the text in at most so many lines."""
        room = self.width - LABEL
        body = wrap(text, room, max_lines=most, placeholder=" …", break_on_hyphens=False) or [""]
        heads = [label, *[""] * (len(body) - 1)]
        return [
            Line(f"{head:<{LABEL}}{part}".replace(TIE, " ").rstrip(), colour)
            for head, part in zip(heads, body, strict=True)
        ]

    def to_its_end(self, label: str, text: str, colour: Colour = "") -> list[Line]:
        """Return the text in at most ``_HEAD + _END`` lines; a longer one is cut in its middle.

        What to do is the end of a message.
        """
        body = wrap(text, self.width - LABEL, break_on_hyphens=False)
        if len(body) <= _HEAD + _END:
            return self.labelled(label, text, colour, most=_HEAD + _END)
        end = [Line(f"{'':<{LABEL}}{part}".replace(TIE, " "), colour) for part in body[-_END:]]
        return [*self.labelled(label, text, colour, most=_HEAD), *end]

    def cut(self, text: str, indent: int = 0) -> str:
        """Return the text in one line."""
        room = self.width - indent
        return text if len(text) <= room else f"{text[: room - 1]}…"
