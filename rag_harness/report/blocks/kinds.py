"""The two kinds of blocks, of rows and of judged scores: how lines are read, and what blocks depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from rag_harness.measures import Measure
from rag_harness.report.blocks.block import KeptBlock, RowBlock
from rag_harness.report.blocks.made import BlockInputs, made
from rag_harness.report.blocks.making import Maker, SuiteCases, has_column
from rag_harness.report.blocks.scores import ScoreBlock, ScoreMaker
from rag_harness.report.blocks.shelf import Shelf
from rag_harness.results.row import ExperimentResult, row_or_none
from rag_harness.results.score import ScoreLine, parse_score

_Line = TypeVar("_Line")
_Said_contra = TypeVar("_Said_contra", contravariant=True)
_Block = TypeVar("_Block", bound=KeptBlock)
_Made_co = TypeVar("_Made_co", bound=KeptBlock, covariant=True)


class Making(Protocol[_Said_contra, _Made_co]):
    """A block as it grows."""

    def add(self, line: _Said_contra, /) -> None:
        """Add a parsed line."""
        ...

    def block(self) -> _Made_co:
        """Return the block of the lines so far."""
        ...


@dataclass(frozen=True)
class Kind(Generic[_Line, _Block]):
    """How the blocks of one file are made.

    Attributes:
        read: parses a line; None where it is not of this kind.
        begin: makes an empty block that grows.
        made: returns what a block depends on beside its lines; called only where blocks are kept.
        block: class of the blocks.
    """

    read: Callable[[bytes], _Line | None]
    begin: Callable[[], Making[_Line, _Block]]
    made: Callable[[], BlockInputs]
    block: type[_Block]

    def shelf(self, file: Path) -> Shelf[_Block]:
        """Return the shelf of the blocks of ``file``."""
        return Shelf(file, self.made(), self.block)

    def fill(self, maker: Making[_Line, _Block], content: bytes) -> None:
        """Add lines to ``maker``. Lines of no such kind, as a kill leaves them, are skipped."""
        for text in content.split(b"\n"):
            line = self.read(text) if text and not text.isspace() else None
            if line is not None:
                maker.add(line)


def row_kind(
    measures: Sequence[Measure], gold: SuiteCases, cases: Callable[[], str], digests: bool = True
) -> Kind[ExperimentResult, RowBlock]:
    """Return how blocks of rows are made.

    Args:
        measures: measures that rows are scored on.
        gold: the cases.
        cases: returns the digest of their file.
        digests: whether to store the digest of each row's judged fields.
    """
    return Kind(
        row_or_none,
        lambda: Maker(measures, gold, digests),
        lambda: made(cases(), filter(has_column, measures)),
        RowBlock,
    )


def score_kind(position: Mapping[str, int], cases: Callable[[], str]) -> Kind[ScoreLine, ScoreBlock]:
    """Return how blocks of scores are made. ``position`` is by case; ``cases`` returns the digest of their file."""
    return Kind(parse_score, lambda: ScoreMaker(position), lambda: made(cases(), ()), ScoreBlock)
