"""Records that an object of JSON holds: itself, the items of its list, or its columns, a record an index.

``{"results": [{…}, {…}]}``, ``{"question": [a, b], "answer": [c, d]}``, and a frame of pandas in any of its forms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from rag_harness.dataset.records.field_names import field_meant
from rag_harness.dataset.records.source_record import SourceRecord
from rag_harness.errors import DataError

_WRAPPERS = frozenset(
    {"data", "items", "examples", "goldens", "samples", "records", "rows", "questions", "results", "queries",
     "dataset", "instances", "entries", "tests", "cases", "test_cases", "qas", "train", "test", "dev", "validation"}
)  # fmt: skip
"""Names under which an object holds the records of a file."""
_ASKED = ("query", "turns", "scenario")
_HOLDERS = ("inputs", "vars", "data", "fields", "row", "item")
"""Names under which a record has its question one level lower."""
_SEVERAL_WORDS = 2


def whole_records(value: Mapping[str, Any], file: str) -> Iterator[SourceRecord]:
    """Yield the records of an object that is all of a file.

    Raises:
        DataError: a record is no object, columns have unequal lengths, or several lists hold records.
    """
    key = _list_of_records(value, file) or _only_list(value)
    inner = next((each for name, each in value.items() if name in _WRAPPERS and _is_wrapper(each)), None)
    if key:
        beside = [name for name, each in value.items() if name != key and each not in (None, "", [], {})]
        for number, each in enumerate(value[key]):
            for record in held_records(each, f"{file}, {key}[{number}]"):
                yield replace(record, beside=beside) if beside else record
                beside = []
    elif inner is not None and not _asks(value):
        yield from whole_records(inner, file)
    else:
        yield from held_records(value, f"{file}:1")


def held_records(value: Any, where: str) -> Iterator[SourceRecord]:
    """Yield the records of one object of several: the rows of its columns, else itself.

    Raises:
        DataError: it is no object, or its columns have unequal lengths.
    """
    if not isinstance(value, dict):
        raise DataError(f"{where}: an object was expected, found {json.dumps(value)[:60]}.")
    if (key := _list_of_records(value, where)) is not None:
        for number, each in enumerate(value[key]):
            yield from held_records(each, f"{where}, {key}[{number}]")
        return
    columns = _columns(value)
    if columns is None:
        row = value.get("row")
        # The service of data sets at Hugging Face puts each row below its number.
        yield SourceRecord(where, row if isinstance(row, dict) and "row_idx" in value else value)
    else:
        yield from _rows(columns, value, where)


def _list_of_records(value: Mapping[str, Any], where: str) -> str | None:
    """Return the list whose items ask; None where the object itself asks, or no list does.

    Raises:
        DataError: several lists do.
    """
    if _asks(value):
        return None
    asking = [name for name, each in value.items() if _is_listed(each) and any(map(_asks, each))]
    if len(asking) > 1:
        raise DataError(f"{where}: several lists hold questions: {', '.join(asking)}. Write each into a file.")
    return asking[0] if asking else None


def _only_list(value: Mapping[str, Any]) -> str | None:
    """Return the list that probably is the records of a file, though no item has a name that means a question."""
    if _asks(value):
        return None
    lists = [name for name, each in value.items() if _is_listed(each)]
    named = [name for name in lists if name in _WRAPPERS]
    if len(named or lists) != 1:
        return None
    # A text of several words may be a question under a name that is not known; then the list is the record's own.
    says = any(isinstance(each, str) and len(each.split()) >= _SEVERAL_WORDS for each in value.values())
    return next(iter(named), None) or (None if says else lists[0])


def _is_wrapper(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return any(name in _WRAPPERS and _is_listed(each) for name, each in value.items()) or _columns(value) is not None


def _is_listed(value: Any) -> bool:
    return isinstance(value, list) and any(isinstance(each, dict) for each in value)


def _asks(value: Any) -> bool:
    """Return whether an object has a question, itself or in the object that holds its fields."""
    if not isinstance(value, Mapping):
        return False
    inner = [each for name in _HOLDERS if isinstance(each := value.get(name), Mapping)]
    return any(
        each not in (None, "", [], {}) and field_meant(name) in _ASKED and not _is_column(each)
        for values in (value, *inner)
        for name, each in values.items()
    )


def _is_column(value: Any) -> bool:
    """Return whether a value is texts by their index, and no list of messages."""
    if isinstance(value, Mapping):
        return bool(value) and all(name.isdecimal() for name in value)
    return isinstance(value, list) and bool(value) and all(each is None or isinstance(each, str) for each in value)


def _columns(value: Mapping[str, Any]) -> Mapping[str, list[Any]] | None:
    """Return columns by name; None where an object has none."""
    names, rows = value.get("columns"), value.get("data")
    if isinstance(names, list) and isinstance(rows, list) and all(isinstance(row, list) for row in rows):
        return {str(name): [row[at] for row in rows if at < len(row)] for at, name in enumerate(names)}
    is_asked = any(_is_column(each) and field_meant(name) == "query" for name, each in value.items())
    is_table = len(value) > 1 and all(_is_column(each) for each in value.values())
    if not is_asked and not is_table:
        return None
    listed = {
        name: [*each.values()] if isinstance(each, dict) and _is_column(each) else each for name, each in value.items()
    }
    return {name: each for name, each in listed.items() if isinstance(each, list)}


def _rows(columns: Mapping[str, list[Any]], value: Mapping[str, Any], where: str) -> Iterator[SourceRecord]:
    lengths = {name: len(each) for name, each in columns.items()}
    if len({*lengths.values()}) > 1:
        said = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise DataError(f"{where}: columns of unequal length: {said}. Each needs a value a row.")
    others = {name: each for name, each in value.items() if name not in columns}
    if "columns" in others:  # a frame split into names, index and cells
        others = {}
    for number, cells in enumerate(zip(*columns.values(), strict=True)):
        yield SourceRecord(f"{where}, row {number + 1}", {**others, **dict(zip(columns, cells, strict=True))})
