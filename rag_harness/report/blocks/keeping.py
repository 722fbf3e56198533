"""Makes blocks while lines are written, so that a large file need not be read again at the end of a run."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, TypeVar

from rag_harness.report.blocks.kinds import Kind
from rag_harness.report.blocks.segments import content, segments

_Line = TypeVar("_Line")


class Keeper(Generic[_Line]):
    """Keeps the blocks of one file while another object appends to it.

    Args:
        file: file of rows or scores, with its present lines.
        kind: how its blocks are made.
        size: size of a piece, in bytes.
    """

    def __init__(self, file: Path, kind: Kind[_Line, Any], size: int) -> None:
        self._file, self._kind, self._size = file, kind, size
        self._shelf = kind.shelf(file)
        self._begin()

    def add(self, said: _Line, line: bytes) -> None:
        """Add ``line``, which was just appended, and its parsed form ``said``."""
        self._maker.add(said)
        self._state.update(line)
        self._end += len(line)
        self._turn_over()

    def seal(self) -> None:
        """Keep the block of the last piece. Where another process wrote to the file too, it is never used.

        A file of one piece is read in a second, and has no blocks.
        """
        if self._end > self._start > 0:
            self._put()

    def _put(self) -> None:
        self._shelf.put(self._state.hexdigest(), self._maker.block())

    def _begin(self) -> None:
        """Begin with the lines of the last piece. The line that caused this keeper to be made is among them."""
        pieces = segments(self._file, self._size)
        self._begin_at(pieces[-1].start if pieces else 0)
        there = content(self._file, pieces[-1]) if pieces else b""
        self._state.update(there)
        self._end += len(there)
        self._kind.fill(self._maker, there)
        self._turn_over()

    def _turn_over(self) -> None:
        if self._end - self._start >= self._size:
            self._put()
            self._begin_at(self._end)

    def _begin_at(self, start: int) -> None:
        self._start = self._end = start
        self._maker, self._state = self._kind.begin(), sha256()
