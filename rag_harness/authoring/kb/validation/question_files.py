"""Reads ``queries.jsonl`` or a table, and ``golden.json``, by line. A bad query is a finding; others are checked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from rag_harness.authoring.kb.page import At
from rag_harness.dataset.conversations import order_problems
from rag_harness.dataset.queries import QueryLine, lines_of, refuse_other_form, said_turns
from rag_harness.dataset.query_tables import rows_of_table
from rag_harness.dataset.records.reading import is_table
from rag_harness.errors import DataError
from rag_harness.files.json_text import read_json

_T = TypeVar("_T", bound=BaseModel)
_DECODER = json.JSONDecoder()


@dataclass
class Read(Generic[_T]):
    """The entries of a file with their lines, and the findings about lines that could not be read."""

    file: Path
    entries: list[tuple[int, _T]] = field(default_factory=list)
    problems: list[At] = field(default_factory=list)

    def at(self, line: int) -> str:
        """Return the place of a line, in the form that editors and terminals open."""
        return f"{self.file}:{line}"

    def add(self, line: int, kind: type[_T], value: Any) -> None:
        """Add an entry, or a finding about what is wrong with it."""
        try:
            self.entries.append((line, kind.model_validate(value)))
        except ValidationError as error:
            for each in error.errors():
                name = ".".join(map(str, each["loc"])) or "entry"
                self.problems.append(At(line, f"{name}: {each['msg']}. Mend the entry."))


def read_query_lines(file: Path) -> Read[QueryLine]:
    """Read a file with one JSON object a line, or a table: CSV, TSV or Parquet.

    Raises:
        DataError: there is no such file, or it has another form; says what makes lines of it.
    """
    read: Read[QueryLine] = Read(file)
    if is_table(file) and file.is_file():
        _add_rows(read)
    else:
        _add_lines(read)
    read.problems += [At(number, said) for number, said in order_problems(said_turns(read.entries))]
    return read


def _add_lines(read: Read[QueryLine]) -> None:
    text = _text(read)
    refuse_other_form(read.file, text)
    # split("\n") and not splitlines(): a U+2028 inside a JSON string does not end a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            _add_query(read, number, line)


def _add_rows(read: Read[QueryLine]) -> None:
    try:
        for row in rows_of_table(read.file, {}):
            read.problems += [At(row.number, f"{said}. Mend the cell.") for said in row.problems]
            _add_query(read, row.number, row.text)
    except DataError as error:
        make = f"rag-harness queries import {read.file} --map question=COLUMN"
        raise DataError(f"{error}\nColumns of other names: {make}, and check the lines that it writes.") from None


def _add_query(read: Read[QueryLine], number: int, line: str) -> None:
    try:
        raw = read_json(line)
    except json.JSONDecodeError as error:
        what = f"invalid JSON at column {error.colno}: {error.msg}. Mend the line."
        read.problems.append(At(number, what))
        return
    if not isinstance(raw, dict) or not {"turns", "scenario"} & raw.keys():
        read.add(number, QueryLine, raw)
        return
    turns, wrong = lines_of(line)
    if "scenario" in raw:
        turns = turns[:1]  # the gold of a scenario is that of each of its turns
    read.entries += [(number, turn) for turn in turns]
    read.problems += [At(number, f"{said.rstrip('.')}. Mend the entry.") for said in wrong]


def entry_lines(text: str) -> Iterator[int]:
    """Yield the line where each element of a JSON list begins. The json module does not tell it."""
    counted, line, position = 0, 1, _skip(text, _skip(text, 0) + 1)
    while text[position] != "]":
        line += text.count("\n", counted, position)
        counted = position
        yield line
        position = _skip(text, _DECODER.raw_decode(text, position)[1])
        position = _skip(text, position + 1) if text[position] == "," else position


def _skip(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position


def _text(read: Read[Any]) -> str:
    if not read.file.is_file():
        raise DataError(f"No file {read.file}. Name one that exists with --queries FILE.")
    raw = read.file.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        read.problems.append(At(line, f"not UTF-8 at byte {error.start}. Save the file as UTF-8."))
        return ""
