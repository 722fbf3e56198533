r"""Printing of foreign text on a terminal and in the log of a CI job, so that it triggers no command.

A terminal takes ``\x1b`` and C1 for commands. A runner of GitHub, Azure or TeamCity takes ``::error::`` at the start of
a line, and ``##[error]`` anywhere in it, for commands. No other module prints.
"""

from __future__ import annotations

import re
import shutil
import sys
from typing import TextIO

from rag_harness.shown.hidden import escaped, with_escapes

_STARTS = re.compile(r"^(\s*)(?=::)")
_BRACKET = re.compile(r"(##\w*)(?=\[)")
_JSON_BRACKET = re.compile(r"#(#\w*)(?=\[)")
_REDRAW = "\r\x1b[K"
_COLUMNS = 60, 120
"""Fewest and most: longer lines are hard to read."""


def line(text: str) -> str:
    r"""Return text as one line; a line break in it is written as ``\n``."""
    return _BRACKET.sub(r"\1\\", _STARTS.sub(r"\1\\", escaped(text, kept="\t")))


def block(text: str) -> str:
    """Return text that may have several lines."""
    return "\n".join(map(line, text.replace("\r\n", "\n").split("\n")))


def json_block(text: str) -> str:
    r"""Return JSON with the same meaning; control characters are written as JSON escapes, as ``\u001b``."""
    safe = with_escapes(text, _json_escape, kept="\t\n")
    return _JSON_BRACKET.sub(lambda found: rf"\u0023{found[1]}", safe)


def say(*lines: str, to: TextIO | None = None) -> None:
    """Print each text as a line, by default to standard output."""
    _write("".join(f"{line(each)}\n" for each in lines), to or sys.stdout)


def columns(unknown: int = 100) -> int:
    """Return how wide a text may be: as the terminal, or ``COLUMNS``, says; ``unknown`` where neither does."""
    fewest, most = _COLUMNS
    return max(fewest, min(shutil.get_terminal_size((unknown, 24)).columns, most))


def say_block(text: str, to: TextIO | None = None) -> None:
    """Print a text of several lines whose line breaks come from the harness, e.g. an error with its place."""
    say(*text.split("\n"), to=to)


def say_json(text: str) -> None:
    """Print JSON."""
    _write(f"{json_block(text)}\n", sys.stdout)


def ask(question: str) -> str:
    """Print a question and return the line that the user types. The question may have several lines."""
    return input(block(question))


def redraw(text: str, to: TextIO) -> None:
    """Replace the current line of the terminal by ``text``; an empty text clears the line."""
    _write(f"{_REDRAW}{line(text)}", to)


def _write(text: str, to: TextIO) -> None:
    try:
        to.write(text)
    except UnicodeEncodeError:  # a pipe of Windows, or an old locale: what its charset lacks is written as an escape
        charset = to.encoding or "ascii"
        to.write(text.encode(charset, "backslashreplace").decode(charset))
    to.flush()


def _json_escape(letter: str) -> str:
    units = letter.encode("utf-16-be", "surrogatepass").hex()
    return "".join(rf"\u{units[place : place + 4]}" for place in range(0, len(units), 4))
