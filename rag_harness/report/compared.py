"""Compares two runs case by case, with the tests of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.report.baseline import SavedRun
from rag_harness.report.comparison import Comparison, MeasureChange, compare, on_common_data, paired_of
from rag_harness.report.pairwise_lines import PAIR_COLUMNS, cut, figures, measure_said
from rag_harness.report.summary import table
from rag_harness.stats import holm
from rag_harness.stats.paired import Paired


@dataclass(frozen=True, slots=True)
class Compared:
    """A measure of a suite, the second run minus the first. Holm adjusts the p-values over the suite's measures."""

    change: MeasureChange
    found: Paired
    p_t: float | None = None
    p_permutation: float | None = None

    def cells(self) -> list[str]:
        """Return the row of the table."""
        means = f"{self.change.before:.3f}", f"{self.change.now:.3f}"
        return [f"  {measure_said(self.change.measure)}", *means, *figures(self.found, self.p_t, self.p_permutation)]


def compared_lines(before: SavedRun, now: SavedRun, measures: Sequence[str] = ()) -> list[str]:
    """Return the comparison on all measures, or on the given ones; at most 100 columns wide.

    Raises:
        DataError: the runs are not about the same data.
    """
    both = compare(*on_common_data(now, before))
    wanted = [change for change in both.changes if not measures or change.measure in measures]
    head = [f"compared with the run of {both.before}", *(f"  {each}" for each in [*both.differing, *both.notes])]
    suites = {change.suite: None for change in wanted}
    body = [line for suite in suites for line in _suite(suite, wanted, before, now)]
    return [cut(line) for line in [*head, *(body or [_nothing(both, measures)])]]


def _nothing(both: Comparison, measures: Sequence[str]) -> str:
    known = ", ".join(sorted({change.measure for change in both.changes}))
    return f"nothing to compare in {', '.join(measures)}; both runs have {known}" if known else "nothing to compare"


def _suite(suite: str, changes: Sequence[MeasureChange], before: SavedRun, now: SavedRun) -> Iterator[str]:
    tested = _tested(suite, [change for change in changes if change.suite == suite], before, now)
    count = sum(each.p_t is not None for each in tested)
    yield f"{suite}: p adjusted by Holm for {count} tests"
    yield from table([["", "A", "B", *PAIR_COLUMNS], *(each.cells() for each in tested)])
    for each in tested:
        if each.found.reason:
            yield f"  {measure_said(each.change.measure)}: {each.found.reason}, so no test"


def _tested(suite: str, changes: Sequence[MeasureChange], before: SavedRun, now: SavedRun) -> list[Compared]:
    found = [_paired(suite, change, before, now) for change in changes]
    tests = [each for each in found if each.p_t is not None and each.p_permutation is not None]
    by_t = holm([each.p_t or 0.0 for each in tests]) if tests else []
    by_chance = holm([each.p_permutation or 0.0 for each in tests]) if tests else []
    adjusted = iter(zip(by_t, by_chance, strict=True))
    return [
        Compared(change, each, *(next(adjusted) if each.p_t is not None else ()))
        for change, each in zip(changes, found, strict=True)
    ]


def _paired(suite: str, change: MeasureChange, before: SavedRun, now: SavedRun) -> Paired:
    return paired_of(now.suites[suite], before.suites[suite], change.measure, now.clusters.get(suite))
