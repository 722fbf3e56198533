"""The standing of experiments on a slice of the cases: the best one, and which others it significantly beats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.report.pairwise import PairDifference
from rag_harness.stats.intervals import Interval

Where = tuple[str, str]
"""Key and value of a slice."""
ALL_CASES: Where = ("", "")
"""The slice of every case."""


@dataclass(frozen=True, slots=True)
class SliceStanding:
    """How experiments compare on a slice.

    Attributes:
        data: name of their data.
        where: key of the slice, and its value.
        measure: measure of the comparison; ``unit`` and ``is_lower`` are the measure's: lower is better.
        cases: number of cases of the slice that this run was to look at.
        best: the experiment that is ahead of most others, case by case; of equal ones, that with the best mean.
        mean: mean of its ``n`` values; ``interval`` is the 95 % one, None for one value.
        against: the best minus each other experiment with a value, the nearest first.
        without: experiments that have values elsewhere, but none on this slice.
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
    against: Sequence[PairDifference]
    without: Sequence[str] = ()

    @property
    def name(self) -> str:
        """The slice in the notation of gates."""
        return "=".join(self.where)

    @property
    def beaten(self) -> list[PairDifference]:
        """Experiments that are significantly worse than the best."""
        return [cell for cell in self.against if cell.is_significant and self._is_ahead(cell)]

    @property
    def ahead(self) -> list[PairDifference]:
        """Experiments that are significantly better than the best: possible where some cases lack a value."""
        return [cell for cell in self.against if cell.is_significant and not self._is_ahead(cell)]

    @property
    def equal(self) -> list[PairDifference]:
        """Experiments with the same value as the best on every case."""
        return [cell for cell in self.against if cell.is_level]

    @property
    def is_level(self) -> bool:
        """Whether all have the same value on every case, so that there is no best."""
        return len(self.equal) == len(self.against)

    @property
    def open(self) -> list[PairDifference]:
        """Experiments that differ from the best on some cases, but not significantly."""
        told = [*self.beaten, *self.ahead, *self.equal]
        return [cell for cell in self.against if cell not in told]

    @property
    def winners(self) -> list[str]:
        """The best and its equals, where every other is significantly worse; else nobody."""
        won = self.beaten and len(self.beaten) + len(self.equal) == len(self.against)
        return [self.best, *(cell.second for cell in self.equal)] if won else []

    def _is_ahead(self, cell: PairDifference) -> bool:
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
    """The standings on all slices that were asked for; those of the same data and measure follow each other.

    Attributes:
        found: a standing for each slice.
        blank: slices without a standing, and why.
        tests: size of the family over which p-values are adjusted.
        several: whether ``found`` are about more than one data set.
    """

    found: Sequence[SliceStanding] = ()
    blank: Sequence[str] = ()
    tests: int = 0
    several: bool = False
