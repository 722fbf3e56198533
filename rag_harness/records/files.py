"""Files of rows, scores and prompts: appended, and resumed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from rag_harness.core.errors import CriticalError
from rag_harness.core.files import write_atomically
from rag_harness.core.types import Message
from rag_harness.records.row import (
    ExperimentResult,
    numbered_lines,
    row_or_none,
    rows_in,
)
from rag_harness.records.scores import SCORES, ScoreLine, parse_score

# One experiment's result file. It is appended row by row and resumed. All its rows have the same fingerprint.

PREVIOUS = "previous"
"""Folder beside the result files for lines that a new run has removed from them."""
DAMAGED, DUPLICATES = "damaged", "duplicates"

_BLOCK = 1 << 16
_SAFE_NAME = re.compile(r"\w{1,64}", re.ASCII)


@dataclass
class _Content:
    rows: dict[str, ExperimentResult] = field(default_factory=dict)
    lines: dict[str, bytes] = field(default_factory=dict)
    other: dict[str, list[bytes]] = field(default_factory=dict)
    torn: bool = False


def finished_rows(file: Path, fingerprint: str) -> dict[str, ExperimentResult]:
    """Return the rows without error of ``fingerprint``, by query id. It only reads, so another process may write."""
    return {query_id: row for query_id, row in all_rows(file, fingerprint).items() if row.ok}


def all_rows(file: Path, fingerprint: str) -> dict[str, ExperimentResult]:
    """Return the rows of ``fingerprint``, those with an error included, by query id; a query's last row counts."""
    return _read(file, fingerprint).rows


def last_rows(file: Path) -> dict[str, ExperimentResult]:
    """Return the last row of each query, whatever its fingerprint, by query id."""
    return {row.query_id: row for row in rows_in(file)}


def _read(file: Path, fingerprint: str) -> _Content:
    """Sort the lines of ``file``: rows of this fingerprint (a query's last counts), of others, damaged ones."""
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
    """Writes one result file. Only one process may open it: under xdist that is the controller.

    A row that is appended is already in a journal. The journal stays until ``close`` has synced this file.
    """

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file = file
        self._overwrite = overwrite
        self._fingerprint = ""
        self._written: set[str] = set()
        self._stream: BinaryIO | None = None
        self._has_duplicates = False
        self.set_aside: int = 0
        self.repaired: int = 0

    def append(self, row: ExperimentResult, line: str = "") -> None:
        """Add ``row``, as ``line`` where it came as text. ``close`` removes an older row of the same query."""
        if row.fingerprint != self._fingerprint or self._stream is None:
            self._open(row.fingerprint)
        self._has_duplicates |= row.query_id in self._written
        self._written.add(row.query_id)
        assert self._stream is not None
        self._stream.write((line or row.line()).encode())
        self._stream.flush()

    def close(self) -> None:
        """Keep one row a query, and sync the file to the disk."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        if self._has_duplicates:
            # Lines are kept, not parsed rows, so that unknown keys of a newer release survive.
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
            # A row of unknown origin must not decide the path of a file.
            safe = name if _SAFE_NAME.fullmatch(name) else "other"
            keep_aside(self.file.parent / PREVIOUS / f"{self.file.stem}-{safe}.jsonl", lines)
            if name in (DAMAGED, DUPLICATES):
                self.repaired += len(lines)
            else:
                self.set_aside += len(lines)


def keep_aside(file: Path, lines: Sequence[bytes]) -> int:
    """Append ``lines`` that were removed from other files to ``file``, and return their number."""
    if lines:
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as stream:
            stream.writelines(_ended(line) for line in lines)
        sync(file)
    return len(lines)


def set_torn_apart(file: Path, aside: Path) -> int:
    """Move the end of a torn line, as a full disk leaves it, from ``file`` to ``aside``; return how many there were.

    A line that lacks only its newline gets it. A line that is cut short is not JSON, so no other line is moved.
    """
    if not is_torn(file):
        return 0
    begin, torn = _last_line(file)
    try:
        json.loads(torn)
    except (ValueError, RecursionError):
        keep_aside(aside, [torn])
        with file.open("r+b") as stream:
            stream.truncate(begin)
        return 1
    with file.open("ab") as stream:
        stream.write(b"\n")
    return 0


def _last_line(file: Path) -> tuple[int, bytes]:
    """Return where the last line of a file begins, and the line. A file may have more than fits into memory."""
    with file.open("rb") as stream:
        begin = stream.seek(0, os.SEEK_END)
        end = b""
        while begin and b"\n" not in end:
            step = min(begin, _BLOCK)
            begin = stream.seek(begin - step)
            end = stream.read(step) + end
    place = end.rfind(b"\n") + 1
    return begin + place, end[place:]


def take_over(file: Path, rows: Sequence[tuple[ExperimentResult, bytes]]) -> int:
    """Append the rows that ``file`` lacks, each given with its line; sync the file, and return their number.

    An answer replaces an error. Nothing replaces an answer.
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
            # A line that a kill has torn needs its newline, or the first new line would be lost with it.
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
    """Force the content of a file to the disk (fsync)."""
    with file.open("ab") as stream:
        os.fsync(stream.fileno())


def _ended(line: bytes) -> bytes:
    return line if line.endswith(b"\n") else line + b"\n"


# The file of an experiment's judged scores. Scores are appended; of the same key the last one counts.


class ScoreFile:
    """Writes one file. Only one process may open it: under xdist that is the controller.

    Scores of other judges stay, so that going back to such a judge costs nothing. Scores of replaced rows go to
    ``previous/``.

    Args:
        file: file of one experiment.
        overwrite: whether to start with an empty file.
    """

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file: Path = file
        self._overwrite = overwrite
        self._stream: BinaryIO | None = None
        self._known: set[bytes] = set()
        self._rows: dict[str, str] = {}
        self._is_mixed = False

    def append(self, line: bytes) -> ScoreLine | None:
        """Add a score and return it; None where the line is not a score, or is already in the file."""
        score = parse_score(line)
        key = b"" if score is None else _short(score.key)
        if score is None or key in self._known:
            return None
        if self._stream is None:
            self._open()
        self._known.add(key)
        if self._is_mixed:
            self._rows[score.query_id] = score.row
        assert self._stream is not None
        self._stream.write(line)
        self._stream.flush()
        return score

    def close(self) -> None:
        """Keep one line a key, remove the scores of replaced rows, and sync the file to the disk."""
        if self._stream is None:
            return
        self._stream.close()
        self._stream = None
        if self._is_mixed:
            self._tidy()
        else:
            sync(self.file)

    def _open(self) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        if self._overwrite and not self._known:
            self.file.unlink(missing_ok=True)
        self._is_mixed = self.file.is_file() and self.file.stat().st_size > 0
        self._stream = self.file.open("ab")
        if is_torn(self.file):
            self._stream.write(b"\n")  # a torn line needs its newline, or the next line would be lost with it

    def _tidy(self) -> None:
        kept: dict[tuple[str, ...], bytes] = {}
        stale: list[bytes] = []
        for score, line in _scored(self.file):
            if self._rows.get(score.query_id, score.row) == score.row:
                kept[score.key] = line
            else:
                stale.append(line)
        keep_aside(self.file.parent.parent / PREVIOUS / f"{SCORES}-{self.file.stem}.jsonl", stale)
        write_atomically(self.file, b"".join(kept.values()))


def _short(key: tuple[str, ...]) -> bytes:
    """Return a key as 12 bytes, because a run may have millions of keys."""
    return blake2b(repr(key).encode(), digest_size=12).digest()


def take_over_scores(file: Path, scores: Sequence[tuple[ScoreLine, bytes]]) -> int:
    """Append the scores that ``file`` lacks, each given with its line; sync the file, and return their number.

    A value replaces a failure. Nothing replaces a value.
    """
    known = {score.key: score.is_final for score, _ in _scored(file)}
    new: dict[tuple[str, ...], bytes] = {}
    for score, line in scores:
        if score.key not in known or (score.is_final and not known[score.key]):
            known[score.key], new[score.key] = score.is_final, line
    if new:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("ab") as stream:
            stream.write(b"\n" if is_torn(file) else b"")
            stream.writelines(new.values())
        sync(file)
    return len(new)


def _scored(file: Path) -> Iterable[tuple[ScoreLine, bytes]]:
    for _, line, torn in numbered_lines(file):
        score = parse_score(line)
        if score is not None:
            yield score, line + b"\n" if torn else line


# Prompts as they were sent: ``prompts/<digest>.json`` beside the rows. Each is stored once for all its rows.

PROMPTS = "prompts"
"""Folder beside the result files."""


_text = json.JSONEncoder().encode


def named_prompt(messages: Sequence[Message]) -> tuple[str, str]:
    """Return the digest of messages, and the content of their file; both are empty without messages."""
    if not messages:
        return "", ""
    # As json.dumps writes it with an indent of 1, which it does in Python and not in C: a tenth of a live call's time.
    each = (f'\n {{\n  "role": {_text(one.role)},\n  "content": {_text(one.content)}\n }}' for one in messages)
    content = f"[{','.join(each)}\n]"
    return blake2b(content.encode(), digest_size=12).hexdigest(), content


class PromptFiles:
    """Stores messages under the digest of their content. Several processes may write to the same folder.

    Args:
        output: folder of the result files.
    """

    def __init__(self, output: Path) -> None:
        self._folder = output / PROMPTS
        self._kept: set[str] = set()

    def keep(self, messages: Sequence[Message]) -> str:
        """Write ``messages`` unless their file exists, and return their digest; empty without messages.

        Raises:
            CriticalError: the folder cannot be written.
        """
        digest, content = named_prompt(messages)
        if digest:
            self.keep_file(digest, content)
        return digest

    def keep_file(self, digest: str, content: str) -> None:
        """Write messages that another process has ``named_prompt``, unless their file exists.

        Raises:
            CriticalError: the folder cannot be written.
        """
        if digest not in self._kept:
            self._write(digest, content)
            self._kept.add(digest)

    def _write(self, digest: str, content: str) -> None:
        file = f"{self._folder}/{digest}.json"
        try:
            if not self._kept:
                self._folder.mkdir(parents=True, exist_ok=True)
            # The name is the digest: an existing file has the same content, or is shorter where a kill has torn it.
            if Path(file).exists() and Path(file).stat().st_size == len(content):
                return
            with open(file, "wb", buffering=0) as stream:  # noqa: PTH123 - a third of Path.open's time, once a trial
                stream.write(content.encode("ascii"))
        except OSError as error:
            raise CriticalError(
                f"A prompt cannot be kept in {self._folder}: {error.strerror or error}. Make room, or choose another "
                f"folder with --rag-output."
            ) from error
