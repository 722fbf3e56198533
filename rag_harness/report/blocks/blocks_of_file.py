"""Reads a file of rows or scores as blocks, in the order of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from rag_harness.measures import Measure
from rag_harness.report.blocks.block import KeptBlock, RowBlock
from rag_harness.report.blocks.kinds import Kind, row_kind, score_kind
from rag_harness.report.blocks.making import needs_digests
from rag_harness.report.blocks.scores import ScoreBlock
from rag_harness.report.blocks.segments import Segment, content, digests, segments
from rag_harness.results.cases import CaseFile

_Block = TypeVar("_Block", bound=KeptBlock)


def read_blocks(rows: Path, measures: Sequence[Measure], cases: CaseFile, size: int) -> Iterator[RowBlock]:
    """Yield the blocks of a result file, one at a time; none where there is no file.

    The blocks of a file with several pieces are kept beside it. A kept block is used where its lines, the cases, the
    measures and the code are unchanged.

    Args:
        rows: the file.
        measures: measures that rows are scored on.
        cases: cases of the suite.
        size: size of a piece, in bytes.
    """
    pieces = segments(rows, size)
    asked = len(pieces) > 1 or needs_digests(measures)
    return _read(rows, pieces, row_kind(measures, cases, lambda: cases.digest, asked))


def read_score_blocks(scores: Path, cases: CaseFile, size: int) -> Iterator[ScoreBlock]:
    """Yield the blocks of a file of scores in the same way."""
    return _read(scores, segments(scores, size), score_kind(cases.position, lambda: cases.digest))


def _read(file: Path, pieces: Sequence[Segment], kind: Kind[Any, _Block]) -> Iterator[_Block]:
    if len(pieces) > 1:
        yield from _kept(file, pieces, kind)
        return
    for piece in pieces:
        yield block_of(content(file, piece), kind)


def _kept(file: Path, pieces: Sequence[Segment], kind: Kind[Any, _Block]) -> Iterator[_Block]:
    shelf, known = kind.shelf(file), list[str]()
    for piece, digest in zip(pieces, digests(file, pieces), strict=True):
        known.append(digest)
        block = shelf.get(digest)
        if block is None:
            block = block_of(content(file, piece), kind)
            shelf.put(digest, block)
        yield block
    shelf.keep_only(known)


def block_of(lines: bytes, kind: Kind[Any, _Block]) -> _Block:
    """Return the block of some lines."""
    maker = kind.begin()
    kind.fill(maker, lines)
    return maker.block()
