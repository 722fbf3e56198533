"""The file of an experiment's judged scores. Scores are appended; of the same key the last one counts."""

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
    """Writes one file. Only one process may open it: under xdist that is the controller.

    Scores of other judges stay, so that going back to such a judge costs nothing. Scores of replaced rows go to
    ``previous/``.

    Args:
        file: file of one experiment.
        overwrite: whether to start anew.
    """

    def __init__(self, file: Path, overwrite: bool = False) -> None:
        self.file: Path = file
        self._overwrite = overwrite
        self._stream: BinaryIO | None = None
        self._known: set[bytes] = set()
        self._rows: dict[str, str] = {}
        self._is_mixed = False

    def append(self, line: bytes) -> ScoreLine | None:
        """Add a score and return it; None where the line is no score, or is already in the file."""
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
    """Return a key as 12 bytes, for a run may have millions of keys."""
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
