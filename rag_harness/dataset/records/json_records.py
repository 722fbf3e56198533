"""Records of JSON: a list of objects, an object that holds such a list, or an object a line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.dataset.records.source_text import text_of
from rag_harness.errors import DataError
from rag_harness.files.json_text import is_deep, read_json

MOST_JSON = 512 << 20
"""The most bytes of a JSON file: it is read whole, and its values take several times its size."""
_BLANKS = " \t\r\n"
_WRAPPERS = ("data", "items", "examples", "goldens", "samples", "records", "rows", "questions")
"""Names under which an object of one line holds the records of a file. Under any other, a list is a record's own."""
_DECODER = json.JSONDecoder()


def json_records(file: Path) -> Iterator[SourceRecord]:
    """Yield the records of a JSON or JSONL file, whichever its content is.

    Raises:
        DataError: the file is missing, empty, too large, not UTF-8 or no JSON, or a record is no object.
    """
    text = text_of(file, MOST_JSON)
    begin = _after_blanks(text, 0)
    if text[begin] == "[":
        yield from _items(file, text, begin)
    elif text[begin] == "{" and not _is_line(*text[begin:].partition("\n")):
        yield from _inside(file, text)
    else:
        yield from _lines(file, text)


def _lines(file: Path, text: str) -> Iterator[SourceRecord]:
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            where = f"{file}:{number}"
            try:
                yield SourceRecord(where, _object(read_json(line), where))
            except ValueError as error:
                raise DataError(f"{where}: no JSON: {error}") from None


def _inside(file: Path, text: str) -> Iterator[SourceRecord]:
    """Yield the records of the only list of objects that an object holds; the object itself where it holds none."""
    try:
        whole = read_json(text)
    except json.JSONDecodeError as error:
        raise DataError(f"{file}:{error.lineno}: no JSON: {error.msg} at column {error.colno}.") from None
    lists = {key: value for key, value in whole.items() if isinstance(value, list) and value and _is_objects(value)}
    if len(lists) == 1:
        ((key, items),) = lists.items()
        yield from (SourceRecord(f"{file}, {key}[{number}]", each) for number, each in enumerate(items))
    else:
        yield SourceRecord(f"{file}:1", whole)


def _items(file: Path, text: str, begin: int) -> Iterator[SourceRecord]:
    """Yield the items of a list, one decoded at a time, with their lines."""
    place, counted, line = _after_blanks(text, begin + 1), 0, 1
    while text[place : place + 1] not in ("]", ""):
        line += text.count("\n", counted, place)
        counted, where = place, f"{file}:{line}"
        try:
            value, place = _DECODER.raw_decode(text, place)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{where}: no JSON: {error}") from None
        if is_deep(value):
            raise DataError(f"{where}: nested too deeply.")
        yield SourceRecord(where, _object(value, where))
        place = _after_blanks(text, place)
        if text[place : place + 1] == ",":
            place = _after_blanks(text, place + 1)
        elif text[place : place + 1] != "]":
            raise DataError(f"{where}: no JSON: a comma or ] is missing behind this item. Was the file cut short?")
    if text[place : place + 1] != "]" or text[place + 1 :].strip():
        raise DataError(f"{file}: no JSON: one list was expected, and it ends early or something stands behind it.")


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object was expected, found {json.dumps(value)[:60]}.")
    return value


def _is_line(first: str, _: str, others: str) -> bool:
    """Whether the first line of a file is a record. One that is all of the file and only wraps a list is none."""
    try:
        found = read_json(first)
    except ValueError:
        return False
    return isinstance(found, dict) and not (not others.strip() and _is_wrapper(found))


def _is_wrapper(value: dict[str, Any]) -> bool:
    return any(isinstance(items := value.get(name), list) and items and _is_objects(items) for name in _WRAPPERS)


def _is_objects(value: list[Any]) -> bool:
    return all(isinstance(each, dict) for each in value)


def _after_blanks(text: str, place: int) -> int:
    while place < len(text) and text[place] in _BLANKS:
        place += 1
    return place
