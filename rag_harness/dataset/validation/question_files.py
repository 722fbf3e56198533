"""``queries.jsonl`` and ``golden.json`` with line numbers. A bad entry is a finding; the good ones are checked on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rag_harness.dataset.queries import EvidenceLine, QueryLine
from rag_harness.dataset.validation.page import At
from rag_harness.errors import DataError

T = TypeVar("T", bound=BaseModel)
_DECODER = json.JSONDecoder()


class GoldenEntry(BaseModel):
    """One golden entry; ``expected_document_id`` is ``file.md``, ``file.md#heading`` or ``file.md#chunk_3``."""

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True)
    query: str = Field(min_length=1)
    expected_document_id: str = Field(min_length=1)
    justification: str = ""
    evidence: tuple[str | EvidenceLine, ...] = ()

    @field_validator("evidence", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return () if value is None else value if isinstance(value, list | tuple) else (value,)

    @property
    def filename(self) -> str:
        """The file of the expected document."""
        return self.expected_document_id.partition("#")[0]

    @property
    def anchor(self) -> str:
        """What follows the ``#``: a heading's anchor, a chunk, or nothing."""
        return self.expected_document_id.partition("#")[2]


@dataclass
class Read(Generic[T]):
    """The entries of a file with their lines, and what could not be read."""

    file: Path
    entries: list[tuple[int, T]] = field(default_factory=list)
    problems: list[At] = field(default_factory=list)

    def at(self, line: int) -> str:
        """Return where a line is, as editors and terminals open it."""
        return f"{self.file}:{line}"

    def add(self, line: int, kind: type[T], value: Any) -> None:
        """Add an entry, or what is wrong with it."""
        try:
            self.entries.append((line, kind.model_validate(value)))
        except ValidationError as error:
            for each in error.errors():
                name = ".".join(map(str, each["loc"])) or "entry"
                self.problems.append(At(line, f"{name}: {each['msg']}. Mend the entry."))


def read_query_lines(file: Path) -> Read[QueryLine]:
    """Read a file of one JSON object a line.

    Raises:
        DataError: there is no such file.
    """
    read: Read[QueryLine] = Read(file)
    # split("\n") and not splitlines(): a U+2028 inside a JSON string is no end of line.
    for number, line in enumerate(_text(read, "--queries").split("\n"), 1):
        if line.strip():
            _add_query(read, number, line)
    return read


def _add_query(read: Read[QueryLine], number: int, line: str) -> None:
    try:
        read.add(number, QueryLine, json.loads(line))
    except json.JSONDecodeError as error:
        read.problems.append(At(number, _invalid(error)))


def read_golden(file: Path) -> Read[GoldenEntry]:
    """Read a JSON list of golden entries.

    Raises:
        DataError: there is no such file.
    """
    read: Read[GoldenEntry] = Read(file)
    text = _text(read, "--golden")
    try:
        for line, value in _numbered(text) if text else ():
            read.add(line, GoldenEntry, value)
    except json.JSONDecodeError as error:
        read.problems.append(At(error.lineno, _invalid(error)))
    return read


def _numbered(text: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON list with the lines they start on, which json does not tell."""
    json.loads(text)
    position, line = _skip(text, 0), 1
    if text[position] != "[":
        raise json.JSONDecodeError("expected a list of entries", text, position)
    counted, position = 0, _skip(text, position + 1)
    while text[position] != "]":
        line += text.count("\n", counted, position)
        counted = position
        value, end = _DECODER.raw_decode(text, position)
        yield line, value
        position = _skip(text, end)
        position = _skip(text, position + 1) if text[position] == "," else position


def _skip(text: str, position: int) -> int:
    while text[position] in " \t\r\n":
        position += 1
    return position


def _text(read: Read[Any], option: str) -> str:
    if not read.file.is_file():
        raise DataError(f"No file {read.file}. Name one that exists with {option} FILE.")
    raw = read.file.read_bytes()
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        read.problems.append(At(line, f"not UTF-8 at byte {error.start}. Save the file as UTF-8."))
        return ""


def _invalid(error: json.JSONDecodeError) -> str:
    return f"invalid JSON at column {error.colno}: {error.msg}. Mend the line."
