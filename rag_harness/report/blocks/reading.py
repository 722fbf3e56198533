"""A result file -> its blocks, in the order of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_harness.measures import Measure
from rag_harness.report.blocks.block import Block
from rag_harness.report.blocks.made import made
from rag_harness.report.blocks.making import has_column, lines_of, made_of, needs_digests
from rag_harness.report.blocks.segments import Segment, content, digests, segments
from rag_harness.report.blocks.shelf import Shelf
from rag_harness.results.cases import CaseFile


def read_blocks(rows: Path, measures: Sequence[Measure], cases: CaseFile, size: int) -> Iterator[Block]:
    """Yield the blocks of a file, one at a time; none where there is no file.

    Those of a file of more than one piece are kept beside it, and taken from there where their lines, the cases, the
    measures and the code are what they were.

    Args:
        rows: the file.
        measures: that rows are scored on.
        cases: of the suite.
        size: of a piece, in bytes.
    """
    pieces = segments(rows, size)
    if len(pieces) > 1:
        yield from _kept(rows, pieces, measures, cases)
        return
    for piece in pieces:
        yield made_of(lines_of(content(rows, piece)), measures, cases, needs_digests(measures))


def _kept(rows: Path, pieces: Sequence[Segment], measures: Sequence[Measure], cases: CaseFile) -> Iterator[Block]:
    shelf, known = Shelf(rows, made(cases.digest, filter(has_column, measures))), list[str]()
    for piece, digest in zip(pieces, digests(rows, pieces), strict=True):
        known.append(digest)
        block = shelf.get(digest)
        if block is None:
            block = made_of(lines_of(content(rows, piece)), measures, cases)
            shelf.put(digest, block)
        yield block
    shelf.keep_only(known)
