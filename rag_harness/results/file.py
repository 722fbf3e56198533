"""One experiment's result file: appended a row at a time, resumed, and never mixed with another fingerprint's rows."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from rag_harness.files.atomic import write_atomically
from rag_harness.results.row import ExperimentResult, numbered_lines, row_or_none, rows_in

PREVIOUS = "previous"
"""Folder beside the result files for lines that a new run set aside."""
DAMAGED, DUPLICATES = "damaged", "duplicates"

_SAFE_NAME = re.compile(r"\w{1,64}", re.ASCII)


@dataclass
class _Content:
    rows: dict[str, ExperimentResult] = field(default_factory=dict)
    lines: dict[str, bytes] = field(default_factory=dict)
    other: dict[str, list[bytes]] = field(default_factory=dict)
    torn: bool = False


def finished_rows(file: Path, fingerprint: str) -> dict[str, ExperimentResult]:
    """Return the rows without error of ``fingerprint``, by query id. Only reads: a worker may, while another writes."""
    return {query_id: row for query_id, row in _read(file, fingerprint).rows.items() if row.ok}


def _read(file: Path, fingerprint: str) -> _Content:
    """Sort the lines of ``file``: this fingerprint's rows (the last of a query wins), other fingerprints', damaged."""
    content = _Content()
    for _, line, torn in numbered_lines(file):
        content.torn = torn
        row = row_or_none(line)
        if row is None:
            content.other.setdefault(DAMAGED, []).append(line)
            continue
        if row.fingerprint != fingerprint:
            content.other.setdefault(row.fingerprint, []).append(line)
            continue
        if row.query_id in content.lines:
            content.other.setdefault(DUPLICATES, []).append(content.lines[row.query_id])
        content.rows[row.query_id] = row
        content.lines[row.query_id] = _ended(line)
    return content


class ResultFile:
    """Writes one result file. Only one process may hold it: under xdist that is the controller.

    A row that comes here is in a journal already, which stays until ``close`` has made this file safe.
    """

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file = file
        self._overwrite = overwrite
        self._fingerprint = ""
        self._written: set[str] = set()
        self._stream: BinaryIO | None = None
        self._has_duplicates = False
        self.set_aside = 0
        self.repaired = 0

    def append(self, row: ExperimentResult, line: str = "") -> None:
        """Add ``row``, as ``line`` where it came as text. An older row of its query leaves when the file is closed."""
        if row.fingerprint != self._fingerprint or self._stream is None:
            self._open(row.fingerprint)
        self._has_duplicates |= row.query_id in self._written
        self._written.add(row.query_id)
        assert self._stream is not None
        self._stream.write((line or row.line()).encode())
        self._stream.flush()

    def close(self) -> None:
        """Leave one row a query, on disk."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._has_duplicates:
            # Lines and not rows: a newer release's keys, unknown here, survive.
            write_atomically(self.file, b"".join(_read(self.file, self._fingerprint).lines.values()))
            self._has_duplicates = False
        elif self._written:
            sync(self.file)

    def _open(self, fingerprint: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.close()
        if self._overwrite and not self._fingerprint:
            self.file.unlink(missing_ok=True)
        content = _read(self.file, fingerprint)
        self._fingerprint, self._written = fingerprint, set(content.lines)
        self._keep_aside(content.other)
        if content.other or content.torn:
            write_atomically(self.file, b"".join(content.lines.values()))
        self._stream = self.file.open("ab")

    def _keep_aside(self, other: dict[str, list[bytes]]) -> None:
        for name, lines in other.items():
            # A row of unknown origin must not choose the path.
            safe = name if _SAFE_NAME.fullmatch(name) else "other"
            keep_aside(self.file.parent / PREVIOUS / f"{self.file.stem}-{safe}.jsonl", lines)
            if name in (DAMAGED, DUPLICATES):
                self.repaired += len(lines)
            else:
                self.set_aside += len(lines)


def keep_aside(file: Path, lines: Sequence[bytes]) -> int:
    """Add ``lines`` to a file of what was taken out of others, and return their number."""
    if lines:
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as stream:
            stream.writelines(_ended(line) for line in lines)
        sync(file)
    return len(lines)


def take_over(file: Path, rows: Sequence[tuple[ExperimentResult, bytes]]) -> int:
    """Append those rows, given with their lines, that ``file`` lacks, to the disk, and return their number.

    An answer takes the place of an error, and nothing takes the place of an answer.
    """
    known = _outcomes(file)
    new: dict[tuple[str, str], bytes] = {}
    for row, line in rows:
        key = row.fingerprint, row.query_id
        if key not in known or (row.ok and not known[key]):
            known[key], new[key] = row.ok, line
    if new:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            # What a kill tore must not swallow the first of them.
            stream.write(b"\n" if is_torn(file) else b"")
            stream.writelines(new.values())
    if file.is_file():
        sync(file)
    return len(new)


def _outcomes(file: Path) -> dict[tuple[str, str], bool]:
    """Return whether each (fingerprint, query id) of ``file`` has an answer."""
    known: dict[tuple[str, str], bool] = {}
    for row in rows_in(file):
        known[row.fingerprint, row.query_id] = row.ok or known.get((row.fingerprint, row.query_id), False)
    return known


def is_torn(file: Path) -> bool:
    """Whether a file ends without a newline, as a kill leaves it."""
    if not file.is_file() or not file.stat().st_size:
        return False
    with file.open("rb") as stream:
        stream.seek(-1, os.SEEK_END)
        return stream.read(1) != b"\n"


def sync(file: Path) -> None:
    """See what a file holds onto the disk."""
    with file.open("ab") as stream:
        os.fsync(stream.fileno())


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"
