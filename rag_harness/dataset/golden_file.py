"""Parser for the file of a golden set, JSON or CSV: raw entries with their places."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from rag_harness.errors import DataError
from rag_harness.files.near_names import meant_beside

EXAMPLE_ENTRY = '[{"query": "…", "expected_document_id": "page.md#heading", "justification": "…"}]'
GOLDEN_COLUMNS = ("query", "expected_document_id", "justification")


class RawEntry(NamedTuple):
    """An unchecked entry: its position from 1, its place in the file, and problems found so far."""

    position: int
    where: str
    value: Any
    problem: str = ""


def raw_entries(file: Path) -> list[RawEntry]:
    """Read ``file``; ``.csv`` is CSV with a header, anything else a JSON list.

    Raises:
        DataError: the file is missing or empty, not UTF-8, or neither JSON nor CSV.
    """
    text = _text(file)
    raws = list(_csv_rows(file, text) if file.suffix.lower() == ".csv" else _json_items(file, text))
    if not raws:
        wanted = (
            f"the header {','.join(GOLDEN_COLUMNS)} and a row for each query"
            if file.suffix.lower() == ".csv"
            else EXAMPLE_ENTRY
        )
        raise DataError(f"{file} holds no entry. A golden set is {wanted}.")
    return raws


def kind(value: Any) -> str:
    """Name the JSON type of ``value`` with its article."""
    names = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def no_golden(file: Path) -> str:
    """Return the message of a golden set that is not there."""
    return f"No file {file}.{meant_beside(file)} Name your golden set with --rag-golden FILE."


def _text(file: Path) -> str:
    if not file.is_file():
        raise DataError(no_golden(file))
    try:
        content = file.read_bytes()
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}.") from error


def _json_items(file: Path, text: str) -> Iterator[RawEntry]:
    items = _json(file, text) if text.strip() else []
    if not isinstance(items, list):
        raise DataError(f"{file}: expected a list of entries, found {kind(items)}. Write {EXAMPLE_ENTRY}.")
    for position, item in enumerate(items, 1):
        yield RawEntry(position, f"{file}: {_name(position, item)}", item)


def _json(file: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{file}:{error.lineno}: no JSON: {error.msg} at column {error.colno}."
        raise DataError(f"{what} A golden set is one list: {EXAMPLE_ENTRY}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{file}: no JSON that can be read: {error}. A golden set is one list: {EXAMPLE_ENTRY}."
        ) from error


def _csv_rows(file: Path, text: str) -> Iterator[RawEntry]:
    lines = _csv_lines(file, text)
    first = next(lines, None)
    header = _header(file, *first) if first else []
    for position, (line, row) in enumerate(lines, 1):
        value = {name: cell for name, cell in zip(header, row, strict=False) if name in GOLDEN_COLUMNS or cell.strip()}
        misfit = f"{len(row)} cells under a header of {len(header)}. Quote cells that hold commas."
        where = f"{file}:{line}: {_name(position, value)}"
        yield RawEntry(position, where, value, "" if len(row) == len(header) else misfit)


def _csv_lines(file: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, with the number of its first line."""
    # newline="" keeps the line ends inside quotes.
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for row in reader:
            if any(cell.strip() for cell in row):
                yield line, row
            line = reader.line_num + 1
    except csv.Error as error:
        advice = "Put cells that hold commas in quotes, and double the quotes inside."
        raise DataError(f"{file}:{line}: no CSV: {error}. {advice}") from error


def _header(file: Path, line: int, row: list[str]) -> list[str]:
    header = [cell.strip() for cell in row]
    if set(GOLDEN_COLUMNS) - set(header) or len(set(header)) < len(header):
        found = f"expected the header {','.join(GOLDEN_COLUMNS)}, found {','.join(header):.80}"
        raise DataError(f"{file}:{line}: {found}. Columns are separated by commas, and each has its own name.")
    return header


def _name(position: int, value: Any) -> str:
    query = value.get("query") if isinstance(value, dict) else None
    start = " ".join(query.split()) if isinstance(query, str) else ""
    short = start if len(start) <= 40 else f"{start[:40].rstrip()}…"
    return f"entry {position} ({short!r})" if short else f"entry {position}"
