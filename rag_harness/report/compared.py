"""Compares two runs case by case, with the tests of the study."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.report.baseline import SavedRun
from rag_harness.report.comparison import Comparison, MeasureChange, compare, on_common_data, paired_of
from rag_harness.report.comparison_lines import (
    NAME,
    WIDTH,
    cut_line,
    head_lines,
    narrowed,
    open_suites,
    quiet_lines,
    wrapped,
)
from rag_harness.report.misses import cut
from rag_harness.report.pairwise_lines import PAIR_COLUMNS, figures, measure_said
from rag_harness.report.run_diff import RunDiff, run_diff
from rag_harness.report.run_diff_sentences import same_said
from rag_harness.report.summary import table
from rag_harness.stats import holm
from rag_harness.stats.paired import Paired

_HEADER = ("", "before", "now", *PAIR_COLUMNS)


def compared_lines(before: SavedRun, now: SavedRun, measures: Sequence[str] = (), width: int = WIDTH) -> list[str]:
    """Return the comparison on all measures, or on the given ones, at most ``width`` columns wide.

    Raises:
        DataError: the runs are not about the same data.
    """
    both = on_common_data(now, before)
    found = compare(*both, measures)
    if measures and not found.changes:
        return [_nothing(compare(*both), measures)]
    diff = run_diff(found)
    body = [line for suite in open_suites(diff) for line in _suite(diff, suite, before, now, width)]
    return [cut_line(line, width) for line in [*head_lines(diff, width), *body, *quiet_lines(diff)]]


def _nothing(both: Comparison, measures: Sequence[str]) -> str:
    known = ", ".join(sorted({change.measure for change in both.changes}))
    return f"nothing to compare in {', '.join(measures)}; both runs have {known}" if known else "nothing to compare"


def _suite(diff: RunDiff, suite: str, before: SavedRun, now: SavedRun, width: int) -> Iterator[str]:
    rows = diff.rows(suite)
    if rows:
        yield from _table(rows, suite, before, now, width)
    same = same_said(diff.same_of(suite))
    if same:
        yield from (f"  {line}" for line in wrapped(same, width - 2))


def _table(rows: Sequence[MeasureChange], suite: str, before: SavedRun, now: SavedRun, width: int) -> Iterator[str]:
    sides, clusters = (now.suites[suite], before.suites[suite]), now.clusters.get(suite)
    found = [paired_of(*sides, row.measure, clusters)._replace(interval=row.interval) for row in rows]
    yield f"{cut(suite, NAME)}: p and interval by Holm for {_differing(sum(row.is_tested for row in rows))}"
    p_t = _by_t(rows, found)
    lines = [_HEADER, *(_cells(row, pair, p) for row, pair, p in zip(rows, found, p_t, strict=True))]
    yield from table(narrowed(lines, width, (0, 1, 2, 4, 5, 8)))
    for row, pair in zip(rows, found, strict=True):
        if pair.reason and row.is_tested:
            yield f"  {measure_said(row.measure)}: {pair.reason}, so no t-test"


def _differing(count: int) -> str:
    return "the 1 tested measure that differs" if count == 1 else f"the {count} tested measures that differ"


def _cells(change: MeasureChange, found: Paired, p_t: float | None) -> list[str]:
    name = f"  {cut(measure_said(change.measure), NAME)}"
    said = figures(found, p_t, change.p)
    said = said if change.is_tested else [*said[:-1], "not tested"]
    return [name, f"{change.before:.3f}", f"{change.now:.3f}", *said]


def _by_t(rows: Sequence[MeasureChange], found: Sequence[Paired]) -> list[float | None]:
    """Return the p-values of the t-tests of tested measures, adjusted by Holm; None where there is none."""
    each = [pair.p_t if row.is_tested else None for row, pair in zip(rows, found, strict=True)]
    tests = [p for p in each if p is not None]
    adjusted = iter(holm(tests) if tests else [])
    return [None if p is None else next(adjusted) for p in each]
