"""Outcomes of the trials, missing values with their reasons, and the first errors."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.page.content import Block, Cell, Prose, Table, word_cells
from rag_harness.page.figures import name_said
from rag_harness.page.run import Run
from rag_harness.page.sections.made_of import selected_of
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import counted
from rag_harness.results.manifest import SuiteRecord
from rag_harness.types import GOLDEN

_STATES = (
    "experiment",
    "cases",
    "selected",
    "answered",
    "errors",
    "lost",
    "not run",
    "not needed",
    "resumed",
    "replayed",
)
_REASONS = 3
"""Most named reasons of one measure; the others are counted."""


def became_of(run: Run) -> Table | None:
    """Return the outcomes of each experiment's trials."""
    rows = [_states(name, table, run.suites[name], selected_of(run, name)) for name, table in run.selected.items()]
    notes = [
        "lost: selected, but no row came; it counts as the worst. not run: the budget was spent, or somebody stopped "
        "the run. not needed: not asked, for every gate of the experiment had its verdict before. resumed: answered in "
        "an earlier run.",
        *_played(run),
    ]
    return Table("trials", _STATES, rows, "What became of the trials", notes) if rows else None


def _played(run: Run) -> Iterator[str]:
    """Yield what became of turns that simulated users were to say."""
    over = [f"{name}: {counted(len(record.ended), 'turn')}" for name, record in run.suites.items() if record.ended]
    if over:
        yield f"Turns that simulated users never came to count nowhere: {', '.join(over)}."
    for name, record in run.suites.items():
        yield from (f"Taken out of {name}: {talk} {why}." for talk, why in record.taken_out.items())


def _states(name: str, table: SuiteTable, record: SuiteRecord, selected: int) -> list[Cell]:
    totals = table.totals
    bad = (totals.errors, table.lost_of({}))
    left = (len(record.not_run), len(record.settled))
    return [
        Cell(name),
        *word_cells(str(table.total_of({})), str(selected), str(totals.answered)),
        *(Cell(str(n), "bad" if n else "") for n in bad),
        *(Cell(str(n), "unsure" if n else "") for n in left),
        *word_cells(str(totals.resumed), str(totals.replayed)),
    ]


def unmeasured(run: Run) -> Block | None:
    """Return how often each measure has no value though it applies, and why."""
    if not run.selected:
        return None
    if not any(table.totals.rows for table in run.selected.values()):
        return Prose("Nothing was measured: no trial left a row. Lost trials count as the worst.", "bad")
    rows = [row for name, table in run.selected.items() for row in _gaps(name, table)]
    if not rows:
        return Prose("Whatever could be measured was: no case lacks a value of a measure that applies to it.", "good")
    head = ("experiment", "measure", "without a value", "of", "why")
    return Table("unmeasured", head, rows, "What could not be measured: it counts in no mean")


def _gaps(name: str, table: SuiteTable) -> Iterator[list[Cell]]:
    for measure in table.columns:
        failures = table.failures(measure, {})
        if not failures:
            continue
        whys = [f"{why} ({n})" for why, n in failures.most_common(_REASONS)]
        more = len(failures) - _REASONS
        said = "; ".join([*whys, *([f"and {more} more reasons"] if more > 0 else [])])
        count = Cell(str(failures.total()), "unsure")
        yield [Cell(name), Cell(name_said(measure)), count, *word_cells(str(table.selected_of({})), said)]


def errors(run: Run) -> Table | None:
    """Return the first trials without an answer, with their errors."""
    tables = run.selected.values()
    first = [(name, *error) for name, table in run.selected.items() for error in table.totals.first_errors]
    total = sum(table.totals.errors for table in tables)
    # The page lists only trials of experiments, so those of the golden suite have no link.
    rows = [
        [Cell(trial, "bad", trial=run.address(trial) if name != GOLDEN else ""), Cell(why)]
        for name, trial, why in first
    ]
    more = [f"and {total - len(first)} more: filter the trials by status"] if total > len(first) else []
    caption = f"{counted(total, 'trial')} without an answer"
    return Table("errors", ("trial", "error"), rows, caption, more) if rows else None
