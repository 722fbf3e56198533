"""The comparison of two runs as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rag_harness.stats import holm
from rag_harness.stats.paired_tests import Paired
from rag_harness.tables.comparison import Comparison, MeasureChange, compare, on_common_data, paired_of
from rag_harness.tables.pairwise import PAIR_COLUMNS, figures, measure_said, p_said
from rag_harness.tables.reader import SavedRun
from rag_harness.tables.run_diff import RunDiff, run_diff, same_said, sentences
from rag_harness.tables.summary import table
from rag_harness.tables.wording import cut

WIDTH = 100
_HEADER = ("", "before", "now", "difference", "interval", "p", "n", "gained", "lost")
NAME = 23
"""The most of a name: false_abstention_rate and its arrow."""
_NONE = "-"
_QUIET = 4
"""More suites without a sure change have one line together."""
_TIE = "\xa0"
"""A space at which no line is broken."""


def comparison_lines(found: Comparison, width: int = WIDTH) -> list[str]:
    """Return the comparison, at most ``width`` columns wide: sentences, then the measures that differ."""
    diff = run_diff(found)
    head = head_lines(diff, width)
    body = [line for suite in open_suites(diff) for line in _suite(diff, suite, width)]
    return [cut_line(line, width) for line in [*head, *body, *quiet_lines(diff)]]


def head_lines(diff: RunDiff, width: int) -> list[str]:
    """Return the sentences, wrapped, then which runs they are about and what was not compared."""
    said = [line for sentence in sentences(diff) for line in wrapped(sentence.text, width)]
    runs = [] if diff.found.is_same_run else [f"before: {diff.found.before}", f"now:    {diff.found.now}"]
    return [*said, *(f"  {line}" for line in [*runs, *diff.found.notes])]


def wrapped(text: str, width: int) -> list[str]:
    """Return text as lines."""
    together = text.replace("95 %", f"95{_TIE}%")
    return [line.replace(_TIE, " ") for line in wrap(together, width, subsequent_indent="  ", break_on_hyphens=False)]


def cut_line(line: str, width: int) -> str:
    """Return a line without blanks at its end, cut where it is too wide."""
    line = line.rstrip()
    return line if len(line) <= width else f"{line[: width - 1]}…"


def narrowed(rows: Sequence[Sequence[str]], width: int, columns: Sequence[int]) -> list[Sequence[str]]:
    """Return the rows; where they are too wide for the terminal only these columns of them."""
    return list(rows) if width >= WIDTH else [[row[column] for column in columns] for row in rows]


def open_suites(diff: RunDiff) -> list[str]:
    """Return the suites whose tables are shown: something changed there, or no other suite is compared."""
    if diff.found.is_same_run:
        return []
    return [suite for suite in diff.suites if diff.changed(suite) or len(diff.suites) == 1]


def quiet_lines(diff: RunDiff) -> list[str]:
    """Return the suites without a sure change; many of them on one line."""
    quiet = [] if diff.found.is_same_run else [suite for suite in diff.suites if suite not in open_suites(diff)]
    if len(quiet) <= _QUIET:
        return [folded_said(diff, suite) for suite in quiet]
    return [f"no sure change in {len(quiet)} experiments: {', '.join(cut(suite, NAME) for suite in quiet)}"]


def folded_said(diff: RunDiff, suite: str) -> str:
    """Return a suite without a sure change as one line."""
    of = sum(change.suite == suite for change in diff.found.changes)
    return f"{cut(suite, NAME)}: no sure change; {len(diff.rows(suite))} of {of} measures differ"


def _suite(diff: RunDiff, suite: str, width: int) -> Iterator[str]:
    rows = diff.rows(suite)
    if rows:
        lines = [(cut(suite, NAME), *_HEADER[1:]), *(_cells(change) for change in rows)]
        yield from table(narrowed(lines, width, (0, 1, 2, 4, 5, 7, 8)))
        sure = [change for change in rows if change.is_sure]
        for change in sure or rows[:1]:
            yield from _cases(change, width)
    same = same_said(diff.same_of(suite))
    if same:
        yield from (f"  {line}" for line in wrapped(same, width - 2))


def _cells(change: MeasureChange) -> tuple[str, ...]:
    interval = change.interval
    bounds = f"[{interval.low:+.3f}, {interval.high:+.3f}]" if interval else _NONE
    means = f"{change.before:.3f}", f"{change.now:.3f}", f"{change.difference:+.3f}", bounds, p_or_seen(change)
    sides = (str(len(change.gained)), str(len(change.lost))) if change.better else (_NONE, _NONE)
    return (f"  {cut(measure_said(change.measure), NAME)}", *means, str(change.n), *sides)


def p_or_seen(change: MeasureChange) -> str:
    """Return p as text, or that a measure is not tested."""
    return p_said(change.p) if change.is_tested else "not tested"


def _cases(change: MeasureChange, width: int) -> Iterator[str]:
    moves = [("gained", change.gained), ("lost", change.lost)]
    if not change.better:
        moves = [("changed", (*change.rose, *change.fell))]
    for word, cases in moves:
        if cases:
            yield _listed(f"    {cut(change.measure, NAME)} {word}: ", cases, width)


def _listed(head: str, cases: Sequence[str], width: int) -> str:
    for shown in range(len(cases), 0, -1):
        rest = f" and {len(cases) - shown} more" if shown < len(cases) else ""
        line = f"{head}{', '.join(cases[:shown])}{rest}"
        if len(line) <= width:
            return line
    return f"{head}{len(cases)} cases"


_PAIRED_HEADER = ("", "before", "now", *PAIR_COLUMNS)


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
    body = [line for suite in open_suites(diff) for line in _paired_suite(diff, suite, before, now, width)]
    return [cut_line(line, width) for line in [*head_lines(diff, width), *body, *quiet_lines(diff)]]


def _nothing(both: Comparison, measures: Sequence[str]) -> str:
    known = ", ".join(sorted({change.measure for change in both.changes}))
    return f"nothing to compare in {', '.join(measures)}; both runs have {known}" if known else "nothing to compare"


def _paired_suite(diff: RunDiff, suite: str, before: SavedRun, now: SavedRun, width: int) -> Iterator[str]:
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
    lines = [_PAIRED_HEADER, *(_paired_cells(row, pair, p) for row, pair, p in zip(rows, found, p_t, strict=True))]
    yield from table(narrowed(lines, width, (0, 1, 2, 4, 5, 8)))
    for row, pair in zip(rows, found, strict=True):
        if pair.reason and row.is_tested:
            yield f"  {measure_said(row.measure)}: {pair.reason}, so no t-test"


def _differing(count: int) -> str:
    return "the 1 tested measure that differs" if count == 1 else f"the {count} tested measures that differ"


def _paired_cells(change: MeasureChange, found: Paired, p_t: float | None) -> list[str]:
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
