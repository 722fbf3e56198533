"""A line that a person types in a review. Esc gives it up, and a key that is no text is no part of it."""

from __future__ import annotations

import codecs
import os
import re
import select
import sys
from collections.abc import Callable

from rag_harness.shown.terminal import LineShown, ask

SEQUENCE = re.compile(r"\x1b[\[O][0-9;]*[A-Za-z~]")
"""What a terminal sends for a key that is no letter, e.g. an arrow."""
_ESC = "\x1b"
_KEY = re.compile(rf"{SEQUENCE.pattern}|\x1b[^\x1b]|.", re.S)
_BEGUN = re.compile(rb"\x1b([\[O][0-9;]*)?\Z")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_AS_SPACES = str.maketrans("\r\n", "  ")
_END = "\x04"
_MOST_BYTES = 1_024
_SEQUENCE_SECONDS = 0.1
"""Esc begins what an arrow key sends. If nothing follows for so long, it was Esc."""


def typed_line(question: str, has_keys: bool) -> str | None:
    """Return the line that the person types; None if they press Esc or end input.

    Args:
        question: may have several lines.
        has_keys: the terminal sends each key at once. Otherwise it sends whole lines.
    """
    try:
        return _of_keys(question) if has_keys else _of_line(ask(question))
    except (EOFError, KeyboardInterrupt, OSError):
        return None


def _of_line(typed: str) -> str | None:
    text = SEQUENCE.sub("", typed)
    return None if _ESC in text else _CONTROL.sub("", text)


def _of_keys(question: str) -> str | None:
    shown = LineShown(question)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    before = behind = ""  # the cursor
    while True:
        shown.show(before, behind)
        keys = _keys(decoder)
        # Only a break at the end was pressed; one with text behind it is part of a pasted text.
        for key in _KEY.findall(f"{keys[:-1].translate(_AS_SPACES)}{keys[-1:]}"):
            is_left = key == _ESC or (key == _END and not before + behind)
            if is_left or key in "\r\n":
                shown.end(before + behind)
                return None if is_left else before + behind
            before, behind = _after(key, before, behind)


def _keys(decoder: codecs.IncrementalDecoder) -> str:
    """Wait for keys."""
    terminal = sys.stdin.fileno()
    got = b""
    while not got or (_BEGUN.search(got) and select.select([terminal], [], [], _SEQUENCE_SECONDS)[0]):
        read = os.read(terminal, _MOST_BYTES)
        if not read:
            raise EOFError
        got += read
    return decoder.decode(got)


def _after(key: str, before: str, behind: str) -> tuple[str, str]:
    """Return the text before the cursor and behind it after a key."""
    for keys, moved in _MOVES.items():
        if key in keys:
            return moved(before, behind)
    return (before, behind) if _CONTROL.match(key) else (before + key, behind)


_MOVES: dict[tuple[str, ...], Callable[[str, str], tuple[str, str]]] = {
    ("\x1b[D", "\x1bOD"): lambda before, behind: (before[:-1], before[-1:] + behind),  # left
    ("\x1b[C", "\x1bOC"): lambda before, behind: (before + behind[:1], behind[1:]),  # right
    ("\x1b[H", "\x1bOH", "\x1b[1~", "\x01"): lambda before, behind: ("", before + behind),  # to the beginning
    ("\x1b[F", "\x1bOF", "\x1b[4~", "\x05"): lambda before, behind: (before + behind, ""),  # to the end
    ("\x7f", "\b"): lambda before, behind: (before[:-1], behind),
    ("\x1b[3~",): lambda before, behind: (before, behind[1:]),
    ("\x17",): lambda before, behind: ("".join(before.rstrip().rpartition(" ")[:2]), behind),  # Ctrl-W: the last word
    ("\x15",): lambda _, behind: ("", behind),  # Ctrl-U: all before the cursor
}
"""What a key does to the text before the cursor and to that behind it."""
