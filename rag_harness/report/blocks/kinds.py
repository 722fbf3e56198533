"""What is kept as blocks: rows, and judged scores. How a line of each is read, and what its blocks are made by."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from rag_harness.measures import Measure
from rag_harness.report.blocks.block import Block, Kept
from rag_harness.report.blocks.made import Made, made
from rag_harness.report.blocks.making import Gold, Maker, has_column
from rag_harness.report.blocks.scores import ScoreBlock, ScoreMaker
from rag_harness.report.blocks.shelf import Shelf
from rag_harness.results.row import ExperimentResult, row_or_none
from rag_harness.results.score import ScoreLine, parse_score

_Line = TypeVar("_Line")
_Said_contra = TypeVar("_Said_contra", contravariant=True)
_Block = TypeVar("_Block", bound=Kept)
_Made_co = TypeVar("_Made_co", bound=Kept, covariant=True)


class Making(Protocol[_Said_contra, _Made_co]):
    """A block as it grows."""

    def add(self, line: _Said_contra, /) -> None:
        """Take what a line says."""
        ...

    def block(self) -> _Made_co:
        """Return the block of what came so far."""
        ...


@dataclass(frozen=True)
class Kind(Generic[_Line, _Block]):
    """How blocks of one file are made.

    Attributes:
        read: a line; None where it is none of these.
        begin: a block that grows.
        made: what a block depends on beside its lines; asked where blocks are kept.
        block: the class.
    """

    read: Callable[[bytes], _Line | None]
    begin: Callable[[], Making[_Line, _Block]]
    made: Callable[[], Made]
    block: type[_Block]

    def shelf(self, file: Path) -> Shelf[_Block]:
        """Return where blocks of ``file`` are kept."""
        return Shelf(file, self.made(), self.block)

    def fill(self, maker: Making[_Line, _Block], content: bytes) -> None:
        """Have ``maker`` take some lines; those that are none, as a kill leaves them, are passed over."""
        for text in content.split(b"\n"):
            line = self.read(text) if text.strip() else None
            if line is not None:
                maker.add(line)


def row_kind(
    measures: Sequence[Measure], gold: Gold, cases: Callable[[], str], digests: bool = True
) -> Kind[ExperimentResult, Block]:
    """Return how blocks of rows are made.

    Args:
        measures: that rows are scored on.
        gold: the cases.
        cases: the digest of their file.
        digests: whether to say what is judged of each row.
    """
    return Kind(
        row_or_none, lambda: Maker(measures, gold, digests), lambda: made(cases(), filter(has_column, measures)), Block
    )


def score_kind(position: Mapping[str, int], cases: Callable[[], str]) -> Kind[ScoreLine, ScoreBlock]:
    """Return how blocks of scores are made; ``position`` is that of each case, ``cases`` the digest of their file."""
    return Kind(parse_score, lambda: ScoreMaker(position), lambda: made(cases(), ()), ScoreBlock)
