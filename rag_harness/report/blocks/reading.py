"""A result file -> its blocks, in the order of its lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rag_harness.measures import Measure
from rag_harness.report.blocks.block import Block
from rag_harness.report.blocks.making import made_of
from rag_harness.report.blocks.segments import segments
from rag_harness.results.cases import CaseFile


def read_blocks(rows: Path, measures: Sequence[Measure], cases: CaseFile) -> Iterator[Block]:
    """Yield the blocks of a file, one at a time; none where there is no file."""
    for content in segments(rows):
        yield made_of(content.split(b"\n"), measures, cases)
