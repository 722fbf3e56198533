"""Reads the lines of a file of labels, JSON Lines or CSV, each with its line number."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json

_LONGEST_FIELD = 1 << 30


@dataclass(frozen=True, slots=True)
class FileLine:
    """One line: its values by name, its file and its number."""

    values: Mapping[str, Any]
    file: Path
    number: int

    @property
    def where(self) -> str:
        """File and line."""
        return f"{self.file}:{self.number}"


def read_lines(file: Path, problems: list[str]) -> Iterator[FileLine]:
    """Yield the lines of ``file``. Unreadable lines are added to ``problems``.

    Raises:
        DataError: there is no such file, or it is no text.
    """
    text = _text(file)
    if file.suffix.lower() == ".csv":
        yield from _csv(text, file, problems)
        return
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end the line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield from _json(line, file, number, problems)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise DataError(f"No file {file}. Name your labels: a .jsonl or .csv file.") from error
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{file}:{line}: not UTF-8 at byte {error.start}. Save the file as UTF-8.") from error


def _json(line: str, file: Path, number: int, problems: list[str]) -> Iterator[FileLine]:
    try:
        values = read_json(line)
    except ValueError as error:
        problems.append(f"{file}:{number}: no JSON: {error}")
        return
    if isinstance(values, dict):
        yield FileLine(values, file, number)
    else:
        problems.append(
            f"{file}:{number}: a line is an object with 'human' and what it is about; found {line.strip()[:60]}"
        )


def _csv(text: str, file: Path, problems: list[str]) -> Iterator[FileLine]:
    # In some countries spreadsheets write semicolons.
    head = text.partition("\n")[0]
    reader = csv.DictReader(StringIO(text, newline=""), delimiter=";" if ";" in head and "," not in head else ",")
    if "human" not in (reader.fieldnames or ()):
        problems.append(f"{file}:1: no column 'human'; found {', '.join(reader.fieldnames or ()) or 'nothing'}")
        return
    # Contexts in a sheet may be longer than the default limit of a field, 128 kB.
    usual = csv.field_size_limit(_LONGEST_FIELD)
    try:
        for values, number in _numbered(reader):
            if any(isinstance(value, str) and value.strip() for value in values.values()):
                yield FileLine(
                    {name: value for name, value in values.items() if name and value is not None}, file, number
                )
    except csv.Error as error:
        problems.append(f"{file}:{reader.line_num}: no CSV: {error}")
    finally:
        csv.field_size_limit(usual)


def _numbered(reader: csv.DictReader[str]) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Yield each row with the number of its first line: a field may contain line breaks."""
    before = reader.line_num
    for values in reader:
        yield values, before + 1
        before = reader.line_num
