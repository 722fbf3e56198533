"""``golden.json`` or ``golden.csv`` -> entries. Every problem is reported with file and entry, in one error."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator
from pydantic_core import ErrorDetails

from rag_harness.errors import DataError
from rag_harness.types import Metadata

_EXAMPLE = '[{"query": "…", "expected_document_id": "page.md#heading", "justification": "…"}]'
_COLUMNS = ("query", "expected_document_id", "justification")
_REMEDIES = {
    "missing": "is missing. Add it to the entry.",
    "string_too_short": "is empty. Write it, or remove the entry.",
    "too_short": "is empty. Write it, or remove the entry.",
    "string_pattern_mismatch": "may hold letters, digits and _ . - only, because it becomes a test id. Rename it.",
}

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
_Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]+$", max_length=120)]


@dataclass(frozen=True, slots=True)
class GoldenEntry:
    """A query and what should be found for it.

    ``expected`` names pages (``a.md``), headings (``a.md#return-window``) or chunks (``a.md#chunk_3``). ``metadata``
    are the slices: what the file says beyond the named fields, e.g. ``query_type``.
    """

    entry_id: str
    query: str
    expected: tuple[str, ...]
    justification: str
    evidence: tuple[str, ...] = ()
    metadata: Metadata = field(default_factory=dict)


class GoldenLine(BaseModel):
    """One entry of the file; fields beyond these are slices."""

    model_config = ConfigDict(frozen=True, extra="allow")
    id: _Id | None = None
    query: _Text
    expected_document_id: tuple[_Text, ...] = Field(min_length=1)
    justification: _Text
    evidence: tuple[_Text, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    @field_validator("expected_document_id", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("evidence", mode="before")
    @classmethod
    def _quotes(cls, value: Any) -> Any:
        """Accept a quote, an object with ``filename`` and ``quote``, a list of these, and null."""
        if value is None:
            return ()
        quotes = value if isinstance(value, list) else [value]
        return tuple(each.get("quote", each) if isinstance(each, dict) else each for each in quotes)

    def entry(self, position: int) -> GoldenEntry:
        """Return the line as an entry; ``position`` gives it an id where it has none."""
        expected = tuple(dict.fromkeys(self.expected_document_id))
        slices = {**self.metadata, **(self.model_extra or {})}
        return GoldenEntry(
            self.id or f"g{position:03}", self.query, expected, self.justification, self.evidence, slices
        )


class _Raw(NamedTuple):
    """An entry as it was read, with its 1-based position and where to look for it."""

    position: int
    where: str
    value: Any


def read_golden(file: Path) -> list[GoldenEntry]:
    """Read and validate a golden set; ``.csv`` is CSV with a header, anything else JSON.

    Raises:
        DataError: the file is missing, empty or malformed; lists every problem with the entry and what to do.
    """
    raws = list(_csv_rows(file) if file.suffix.lower() == ".csv" else _json_items(file))
    if not raws:
        raise DataError(f"{file} holds no entry. A golden set is {_EXAMPLE}.")
    problems: list[str] = []
    read = [(raw, line.entry(raw.position)) for raw in raws if (line := _parse(raw, problems))]
    problems += _duplicates(read)
    if problems:
        raise DataError("\n".join(problems))
    return [entry for _, entry in read]


def _text(file: Path) -> str:
    if not file.is_file():
        raise DataError(f"No file {file}. Name your golden set with --rag-golden FILE.")
    try:
        return file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror}.") from error


def _json_items(file: Path) -> Iterator[_Raw]:
    text = _text(file)
    if not text.strip():
        return
    try:
        items = json.loads(text)
    except json.JSONDecodeError as error:
        what = f"{file}:{error.lineno}: no JSON: {error.msg} at column {error.colno}."
        raise DataError(f"{what} A golden set is one list: {_EXAMPLE}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{file}: no JSON that can be read: {error}. A golden set is one list: {_EXAMPLE}.") from error
    if not isinstance(items, list):
        raise DataError(f"{file}: expected a list of entries, found {_kind(items)}. Write {_EXAMPLE}.")
    for position, item in enumerate(items, 1):
        yield _Raw(position, f"{file}: {_name(position, item)}", item)


def _csv_rows(file: Path) -> Iterator[_Raw]:
    # newline="" keeps the line ends inside quotes.
    reader = csv.reader(io.StringIO(_text(file), newline=""), strict=True)
    header: list[str] | None = None
    position, line = 0, 1
    try:
        for row in reader:
            if header is None and any(row):
                header = _header(file, line, row)
            elif header and any(cell.strip() for cell in row):
                position += 1
                yield _row(file, line, position, header, row)
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{file}:{line}: no CSV: {error}. Quote cells that hold commas, and double quotes in them.") from error


def _header(file: Path, line: int, row: list[str]) -> list[str]:
    header = [cell.strip() for cell in row]
    missing = [name for name in _COLUMNS if name not in header]
    if missing or len(set(header)) < len(header):
        found = f"expected the header {','.join(_COLUMNS)}, found {','.join(header):.80}"
        raise DataError(f"{file}:{line}: {found}. Columns are separated by commas; each has a name of its own.")
    return header


def _row(file: Path, line: int, position: int, header: list[str], row: list[str]) -> _Raw:
    value = {name: cell for name, cell in zip(header, row, strict=False) if name in _COLUMNS or cell.strip()}
    where = f"{file}:{line}: {_name(position, value)}"
    if len(row) != len(header):
        advice = "Quote cells that hold commas."
        raise DataError(f"{where}: {len(row)} cells under a header of {len(header)}. {advice}")
    return _Raw(position, where, value)
