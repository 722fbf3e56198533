"""One experiment's result file: appended a row at a time, resumed, and never mixed with another fingerprint's rows."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from rag_harness.atomic_file import write_atomically
from rag_harness.results import ExperimentResult, numbered_lines, parse_row

PREVIOUS = "previous"
"""Folder beside the result files for rows that a new run set aside."""

_SAFE_NAME = re.compile(r"\w{1,64}", re.ASCII)


@dataclass
class _Content:
    rows: dict[str, ExperimentResult] = field(default_factory=dict)
    lines: dict[str, bytes] = field(default_factory=dict)
    other: dict[str, list[bytes]] = field(default_factory=dict)
    clean: bool = True


def finished_rows(file: Path, fingerprint: str) -> dict[str, ExperimentResult]:
    """Return the rows without error of ``fingerprint``, by query id. Only reads: a worker may, while another writes."""
    return {query_id: row for query_id, row in _read(file, fingerprint).rows.items() if row.ok}


def _read(file: Path, fingerprint: str) -> _Content:
    """Sort the lines of ``file``: this fingerprint's rows (the last of a query wins), other fingerprints', damaged."""
    content = _Content()
    for _, line, torn in numbered_lines(file):
        try:
            row = parse_row(line)
        except ValidationError:
            content.other.setdefault("damaged", []).append(line)
            content.clean = False
            continue
        if row.fingerprint != fingerprint:
            content.other.setdefault(row.fingerprint, []).append(line)
        content.clean &= row.fingerprint == fingerprint and row.query_id not in content.rows and not torn
        if row.fingerprint == fingerprint:
            content.rows[row.query_id] = row
            content.lines[row.query_id] = _ended(line)
    return content


class ResultFile:
    """Writes one result file. Only one process may hold it: under xdist that is the controller."""

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file = file
        self._overwrite = overwrite
        self._fingerprint = ""
        # Lines and not rows: a newer release's keys, unknown here, survive a rewrite.
        self._lines: dict[str, bytes] = {}
        self.set_aside = 0

    def append(self, row: ExperimentResult) -> None:
        """Add ``row`` and make sure that it is on disk. An older row of the same query leaves in the same step."""
        if row.fingerprint != self._fingerprint:
            self._open(row.fingerprint)
        replaced = row.query_id in self._lines
        self._lines[row.query_id] = line = row.line().encode()
        if replaced:
            self._rewrite()
        else:
            with self.file.open("ab") as stream:
                stream.write(line)
                stream.flush()
                os.fsync(stream.fileno())

    def _open(self, fingerprint: str) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self._overwrite and not self._fingerprint:
            self.file.unlink(missing_ok=True)
        content = _read(self.file, fingerprint)
        self._fingerprint, self._lines = fingerprint, content.lines
        self._keep_aside(content.other)
        if not content.clean:
            self._rewrite()

    def _keep_aside(self, other: dict[str, list[bytes]]) -> None:
        for name, lines in other.items():
            # A row of unknown origin must not choose the path.
            safe = name if _SAFE_NAME.fullmatch(name) else "other"
            kept = self.file.parent / PREVIOUS / f"{self.file.stem}-{safe}.jsonl"
            kept.parent.mkdir(exist_ok=True)
            with kept.open("ab") as stream:
                stream.writelines(_ended(line) for line in lines)
                stream.flush()
                os.fsync(stream.fileno())
            self.set_aside += len(lines)

    def _rewrite(self) -> None:
        write_atomically(self.file, b"".join(self._lines.values()))


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"
