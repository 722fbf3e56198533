"""Blocks made while the rows come, so that nobody has to read a million rows again when the last one is there."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from rag_harness.measures import Measure
from rag_harness.report.blocks.made import made
from rag_harness.report.blocks.making import Gold, Maker, has_column, lines_of
from rag_harness.report.blocks.segments import content, segments
from rag_harness.report.blocks.shelf import Shelf
from rag_harness.results.row import ExperimentResult, row_or_none


class Keeper:
    """Keeps the blocks of one result file that somebody else appends to.

    Args:
        rows: the file, with what it has so far.
        measures: what rows are scored on.
        gold: the cases.
        cases: digest of their file.
        size: of a piece, in bytes.
    """

    def __init__(self, rows: Path, measures: Sequence[Measure], gold: Gold, cases: str, size: int) -> None:
        self._rows, self._measures, self._gold, self._size = rows, measures, gold, size
        self._shelf = Shelf(rows, made(cases, filter(has_column, measures)))
        self._begin()

    def add(self, row: ExperimentResult, line: bytes) -> None:
        """Take a row that was appended as ``line``."""
        self._maker.add(row)
        self._state.update(line)
        self._end += len(line)
        self._turn_over()

    def seal(self) -> None:
        """Keep what has come of the last piece. Where others wrote to the file too, no reader finds a block of it."""
        self._shelf.put(self._state.hexdigest(), self._maker.block())

    def _begin(self) -> None:
        """Begin with the lines of the last piece: the row that made somebody ask for a keeper stands in it."""
        pieces = segments(self._rows, self._size)
        self._begin_at(pieces[-1].start if pieces else 0)
        there = content(self._rows, pieces[-1]) if pieces else b""
        self._state.update(there)
        self._end += len(there)
        for line in lines_of(there):
            row = row_or_none(line)
            if row is not None:
                self._maker.add(row)
        self._turn_over()

    def _turn_over(self) -> None:
        if self._end - self._start >= self._size:
            self.seal()
            self._begin_at(self._end)

    def _begin_at(self, start: int) -> None:
        self._start = self._end = start
        self._maker, self._state = Maker(self._measures, self._gold), sha256()
