"""Records of JSON: a list of objects, an object that holds such a list or columns, or an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_harness.dataset.records.held_records import held_records, whole_records
from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.dataset.records.source_text import text_of
from rag_harness.errors import DataError
from rag_harness.files.json_text import is_deep, read_json

MOST_JSON = 512 << 20
"""The most bytes of a JSON file: it is read whole, and its values take several times its size."""
_BLANKS = " \t\r\n"
_DECODER = json.JSONDecoder()


def json_records(file: Path) -> Iterator[SourceRecord]:
    """Yield the records of a JSON or JSONL file, whichever its content is.

    Raises:
        DataError: the file is missing, empty, too large, not UTF-8 or no JSON, a record is no object, columns have
            unequal lengths, or several lists hold records.
    """
    text = text_of(file, MOST_JSON)
    begin = _after_blanks(text, 0)
    first, _, others = text[begin:].partition("\n")
    if text[begin] == "[":
        yield from _items(file, text, begin)
    elif text[begin] == "{" and not (others.strip() and _is_json(first)):
        yield from whole_records(_whole(file, text), str(file))
    else:
        yield from _lines(file, text)


def _lines(file: Path, text: str) -> Iterator[SourceRecord]:
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{file}:{number}"
            try:
                value = read_json(line)
            except ValueError as error:
                raise DataError(f"{where}: no JSON: {error}. Was the file cut short?") from None
            yield from held_records(value, where)


def _whole(file: Path, text: str) -> Any:
    try:
        return read_json(text)
    except json.JSONDecodeError as error:
        raise DataError(
            f"{file}:{error.lineno}: no JSON: {error.msg} at column {error.colno}. Was the file cut short?"
        ) from None


def _items(file: Path, text: str, begin: int) -> Iterator[SourceRecord]:
    """Yield the items of a list, one decoded at a time, with their lines."""
    place, counted, line = _after_blanks(text, begin + 1), 0, 1
    while text[place : place + 1] not in ("]", ""):
        line += text.count("\n", counted, place)
        counted, where = place, f"{file}:{line}"
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: no JSON: {error}. Was the file cut short?") from None
        if is_deep(value):
            raise DataError(f"{where}: nested too deeply.")
        yield from held_records(value, where)
        place = _after_blanks(text, place)
        if text[place : place + 1] == ",":
            place = _after_blanks(text, place + 1)
        elif text[place : place + 1] != "]":
            raise DataError(f"{where}: no JSON: a comma or ] is missing behind this item. Was the file cut short?")
    if text[place : place + 1] != "]" or text[place + 1 :].strip():
        raise DataError(f"{file}: no JSON: one list was expected, and it ends early or something stands behind it.")


def _is_json(line: str) -> bool:
    try:
        read_json(line)
    except ValueError:
        return False
    return True


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANKS:
        place += 1
    return place
