"""A question as a terminal shows it. Texts are strangers': what would steer the terminal is written out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rag_harness.questions.review.rows import ACCEPTED, REJECTED, Row, said_of, state_of
from rag_harness.questions.review.session import Session, told
from rag_harness.questions.review.showing import Near, Place, Shown
from rag_harness.types import NEGATIVE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

BAR = "a accept  e edit  r reject  n next  b back  s skip  u undo  ? keys  q quit"
STYLES = {ACCEPTED: "green", REJECTED: "red"}
_STEERS = ("Cc", "Cs", "Zl", "Zp")
_TURNS = "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
"""Marks of direction: left open they turn whatever follows on the screen."""


def safe(text: str) -> str:
    """Return a text that prints itself and does nothing else."""
    return "".join(letter if _is_harmless(letter) else _named(letter) for letter in text.expandtabs(4))


def _is_harmless(letter: str) -> bool:
    return letter == "\n" or (letter not in _TURNS and unicodedata.category(letter) not in _STEERS)


def _named(letter: str) -> str:
    return "" if letter == "\r" or letter in _TURNS else f"<{ord(letter):02x}>"


def show(session: Session, console: Console) -> None:
    """Print the question that is shown, as much of it as the screen holds, and the keys."""
    from rich.segment import Segments

    options = console.options.update(height=None)
    lines = [line for text in texts(session) for line in console.render_lines(text, options, pad=False)]
    foot = [line for text in _foot(session) for line in console.render_lines(text, options, pad=False)]
    room = max(3, console.height - len(foot) - 2)
    parts = max(1, -(-len(lines) // room))
    shown = session.part % parts
    end = Segments.__name__ and [segment for line in lines[shown * room : (shown + 1) * room] for segment in (*line, _end())]
    console.print(Segments(end), end="")
    if parts > 1:
        console.print(_text(f"part {shown + 1} of {parts}: space shows the next", "dim"), end="\n")
    console.print(Segments([segment for line in foot for segment in (*line, _end())]), end="")
