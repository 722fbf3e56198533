"""Texts of a value that may hold several: a list, or a cell with a list in JSON, in Python or with ``|`` between."""

from __future__ import annotations

import ast
from typing import Any

from rag_harness.dataset.records.source_record import given, plain_text
from rag_harness.files.json_text import read_json


class ListCellError(ValueError):
    """A cell begins like a list and is none that can be read; the message says why."""


def texts_of(value: Any, separator: str = "") -> list[str]:
    """Return the texts of a value, without empty ones.

    Args:
        value: a list, a text that holds one, or one text. None and NaN have no texts.
        separator: what parts the texts of a cell that is no list.

    Raises:
        ListCellError: a text begins like a list of texts, and is one neither in JSON nor in Python.
    """
    known = given(value)
    if isinstance(known, (list, tuple)):
        return [text for each in known if (text := plain_text(each))]
    text = plain_text(known)
    if _is_listed(text):
        return [each for item in _listed(text) if (each := plain_text(item))]
    parts = text.split(separator) if separator else [text]
    return [part for each in parts if (part := each.strip())]


def _is_listed(text: str) -> bool:
    """Whether a text is a list, and not one that begins with a link or a number in brackets."""
    return text.startswith("[") and text.endswith("]") and text[1:].lstrip()[:1] in ("'", '"', "]")


def _listed(text: str) -> list[Any]:
    try:
        found = read_json(text)
    except ValueError:
        return [*_python_texts(text)]
    return found if isinstance(found, list) else [found]


def _python_texts(text: str) -> list[str]:
    """Return the texts of a list as Python prints one. NumPy prints no commas: these would join to one text."""
    found: list[str] = []
    place = _after_blanks(text, 1)
    while place < len(text) - 1:
        end = _end_of_literal(text, place)
        found.append(_evaluated(text[place:end]))
        place = _after_blanks(text, end)
        if text[place] == ",":
            place = _after_blanks(text, place + 1)
        elif place < len(text) - 1:
            raise ListCellError(
                f"no comma behind {found[-1][:40]!r}: a list as NumPy prints it. Write the lists as JSON"
            )
    return found


def _end_of_literal(text: str, start: int) -> int:
    """Return where the literal ends that begins at ``start``."""
    mark = text[start]
    if mark not in "'\"":
        raise ListCellError(f"{text[start : start + 40]!r} is no text in a list, neither in JSON nor in Python")
    place = start + 1
    while (end := text.find(mark, place)) >= 0:
        before = text[place:end]
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return end + 1
        place = end + 1
    raise ListCellError(f"the text {text[start : start + 40]!r} does not end")


def _evaluated(literal: str) -> str:
    try:
        return str(ast.literal_eval(literal))
    except (ValueError, SyntaxError) as error:
        raise ListCellError(f"{literal[:40]!r} is no text in Python: {error}") from None


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) - 1 and text[place].isspace():
        place += 1
    return place
