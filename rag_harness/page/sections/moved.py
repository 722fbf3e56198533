"""The queries whose values changed between two experiments, or between two runs of one; the largest changes first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_harness.gates.units import value_said
from rag_harness.page.content import Cell, Table, Tone
from rag_harness.page.figures import measure_title
from rag_harness.page.run import Run
from rag_harness.report.direction import better_of
from rag_harness.report.misses import cut
from rag_harness.report.wording import counted
from rag_harness.types import TrialId

SHOWN_MOVES = 20
_SAME = 1e-12
_QUERY = 90
_Move = tuple[str, float, float]
"""Case, value before, value after."""


@dataclass(frozen=True, slots=True)
class ComparedExperiment:
    """An experiment of a run; ``label`` is its name in the table."""

    run: Run
    experiment: str
    label: str

    def values(self, measure: str) -> Mapping[str, float]:
        """Return the value of each case that has one."""
        return self.run.tables[self.experiment].values(measure, {})

    def cell(self, case: str, text: str, tone: Tone = "") -> Cell:
        """Return a cell with a link to the trial."""
        return Cell(text, tone, trial=self.run.address(TrialId(self.experiment, case)))


def moved(name: str, now: ComparedExperiment, before: ComparedExperiment, measure: str) -> list[Table]:
    """Return a table of queries that went up and one of those that went down, where there are any.

    Args:
        name: prefix of the tables' names.
        now: side of the later value.
        before: side of the earlier value.
        measure: a measure that both have.
    """
    new, old = now.values(measure), before.values(measure)
    moves = sorted(((case, old[case], new[case]) for case in new if case in old), key=lambda move: move[1] - move[2])
    up = [move for move in moves if move[2] - move[1] > _SAME]
    down = [move for move in reversed(moves) if move[1] - move[2] > _SAME]
    sides = {"up": up, "down": down}
    return [_table(f"{name}-{way}", now, before, measure, way, found) for way, found in sides.items() if found]


def _table(
    name: str, now: ComparedExperiment, before: ComparedExperiment, measure: str, way: str, moves: Sequence[_Move]
) -> Table:
    found = now.run.tables[now.experiment].columns[measure].measure
    better = better_of(found)
    tone: Tone = ("good" if (way == "up") == (better == "higher") else "bad") if better else ""
    rows = [
        [
            now.cell(case, case),
            before.cell(case, value_said(old, found.unit)),
            now.cell(case, value_said(new, found.unit), tone),
            Cell(cut(now.run.query_of(now.experiment, case), _QUERY)),
        ]
        for case, old, new in moves[:SHOWN_MOVES]
    ]
    more = [f"and {len(moves) - SHOWN_MOVES} more"] if len(moves) > SHOWN_MOVES else []
    caption = f"{counted(len(moves), 'query', 'queries')} went {way}: {measure_title(found)}"
    return Table(name, ("query", before.label, now.label, "question"), rows, caption, more)
