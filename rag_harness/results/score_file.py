"""The file of an experiment's judged scores: appended a score at a time; of the same key the last one holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from rag_harness.files.atomic import write_atomically
from rag_harness.results.file import PREVIOUS, is_torn, keep_aside, sync
from rag_harness.results.row import numbered_lines
from rag_harness.results.score import SCORES, ScoreLine, parse_score


class ScoreFile:
    """Writes one file. Only one process may hold it: under xdist that is the controller.

    Scores of other judges stay: going back to one costs nothing. Scores of a row that is no more go to ``previous/``.

    Args:
        file: of one experiment.
        overwrite: start anew.
    """

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file, self._overwrite = file, overwrite
        self._stream: BinaryIO | None = None
        self._known: set[bytes] = set()
        self._rows: dict[str, str] = {}
        self._is_mixed = False

    def append(self, line: bytes) -> ScoreLine | None:
        """Add a score and return it; None where the line is no score, or has come before."""
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
        """Leave one line a key, on disk, and none of a row that another has taken the place of."""
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
            self._stream.write(b"\n")  # what a kill tore must not swallow the next

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
    """Return a key in 12 bytes: a run may have millions."""
    return blake2b(repr(key).encode(), digest_size=12).digest()


def take_over_scores(file: Path, scores: Sequence[tuple[ScoreLine, bytes]]) -> int:
    """Append those scores, given with their lines, that ``file`` lacks, to the disk, and return their number.

    A value takes the place of a failure, and nothing takes the place of a value.
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
