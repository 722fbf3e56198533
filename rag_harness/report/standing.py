"""How experiments stand on a slice of the cases, as it was found: who is the best, whom it beats, and for sure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.report.pairwise import Cell
from rag_harness.stats.intervals import Interval

Where = tuple[str, str]
"""Key and value of a slice."""


@dataclass(frozen=True, slots=True)
class Standing:
    """How experiments stand on a slice.

    Attributes:
        data: name of the data that they were asked about.
        where: key of the slice, and its value.
        measure: what they are compared on; ``unit`` and ``is_lower`` are the measure's: lower is better.
        cases: of the slice, that this run was to look at.
        best: the experiment that is ahead of most others, case by case; with equals of it, that of the best mean.
        mean: of its ``n`` values; ``interval`` is the 95 % one, None of one value.
        against: the best minus each other experiment with a value, the nearest first.
        without: experiments that have values elsewhere, and none on this slice.
    """

    data: str
    where: Where
    measure: str
    unit: str
    is_lower: bool
    cases: int
    best: str
    n: int
    mean: float
    interval: Interval | None
    against: Sequence[Cell]
    without: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The slice as gates write it."""
        return "=".join(self.where)

    @property
    def beaten(self) -> list[Cell]:
        """Those that the best is better than, for sure."""
        return [cell for cell in self.against if cell.is_significant and self._is_ahead(cell)]

    @property
    def ahead(self) -> list[Cell]:
        """Those that are better than the best, for sure: over some of the cases, where some have no value."""
        return [cell for cell in self.against if cell.is_significant and not self._is_ahead(cell)]

    @property
    def equal(self) -> list[Cell]:
        """Those that have the same value on every case."""
        return [cell for cell in self.against if cell.is_level]

    @property
    def is_level(self) -> bool:
        """Whether all have the same value on every case, so that none is the best."""
        return len(self.equal) == len(self.against)

    @property
    def open(self) -> list[Cell]:
        """Those that cannot be told apart from the best, though some values differ."""
        told = [*self.beaten, *self.ahead, *self.equal]
        return [cell for cell in self.against if cell not in told]

    @property
    def winners(self) -> list[str]:
        """The best with its equals, if every other is beaten for sure; else nobody."""
        won = self.beaten and len(self.beaten) + len(self.equal) == len(self.against)
        return [self.best, *(cell.second for cell in self.equal)] if won else []

    def _is_ahead(self, cell: Cell) -> bool:
        return cell.found is not None and (cell.found.difference < 0) == self.is_lower

    def as_json(self) -> dict[str, Any]:
        """Return the standing for ``summary.json``."""
        return {
            "data": self.data,
            "slice": dict([self.where]),
            "measure": self.measure,
            "cases": self.cases,
            "best": self.best,
            "n": self.n,
            "mean": self.mean,
            "interval": list(self.interval) if self.interval else None,
            "winner": self.winners[0] if len(self.winners) == 1 else None,
            "winners": self.winners,
            "against": [cell.as_json() for cell in self.against],
            "without": list(self.without),
        }


@dataclass(frozen=True, slots=True)
class Standings:
    """How experiments stand on all slices that were asked for, those of the same data and measure beside each other.

    Attributes:
        found: a slice each.
        blank: what there is nothing to say of, and why.
        tests: the size of the family that p-values are adjusted over.
        several: whether ``found`` are of several data.
    """

    found: Sequence[Standing] = ()
    blank: Sequence[str] = ()
    tests: int = 0
    several: bool = False
