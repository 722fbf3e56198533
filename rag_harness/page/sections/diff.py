"""Changes between runs: the first run against each other run, suite by suite and query by query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.errors import DataError
from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, Tone, word_cells
from rag_harness.page.figures import NONE, better_of, interval_said, measure_title, name_said
from rag_harness.page.run import Run
from rag_harness.page.sections.moved import ComparedExperiment, moved
from rag_harness.page.sections.scorecard import measures_of
from rag_harness.report.baseline import SavedRun, saved_run
from rag_harness.report.comparison import Comparison, MeasureChange, compare, on_common_data
from rag_harness.report.pairwise import ALPHA, excludes_0
from rag_harness.report.pairwise_lines import p_said

_HEAD = ("measure", "n", "before", "now", "difference", "95 % interval", "p (Holm)", "gained", "lost")
_LISTED = ("g_mean", "hri", "answer_correctness", "faithfulness", "recall@5", "token_f1")
"""Measures whose queries are listed; for other measures they are counted."""
_DOCUMENTS = "documents"
_UNKNOWN = (
    "The questions are the same; whether the documents are is not kept with both runs (--rag-save or --rag-compare "
    "keeps it), so a difference may also be theirs."
)


def diff(runs: Sequence[Run]) -> Section | None:
    """Return the changes from each other run to the first; None for a single run."""
    if len(runs) < 2:
        return None
    blocks = [block for number, before in enumerate(runs[1:], 1) for block in _against(runs[0], before, number)]
    return Section("diff", "Changes between runs", blocks)


def _against(now: Run, before: Run, number: int) -> Iterator[Block]:
    try:
        found = compare(*on_common_data(_saved(now, before), _saved(before, now)))
    except DataError as error:
        # Only this pair cannot be compared; the other runs are still shown.
        yield Prose(f"{now.name} is not set against {before.name}. {error}", "bad")
        return
    yield Prose(f"{now.name} of {now.manifest.date} against {before.name} of {found.before}")
    if not all(_DOCUMENTS in run.manifest.digests for run in (now, before)):
        yield Prose(_UNKNOWN, "unsure")
    yield _differing(found, before, number)
    if not found.changes:
        yield Prose("No suite and no measure is in both: there is nothing to compare.", "unsure")
    for suite in dict.fromkeys(change.suite for change in found.changes):
        yield from _suite([change for change in found.changes if change.suite == suite], now, before, number)


def _saved(run: Run, other: Run) -> SavedRun:
    """Return a run for comparison. Documents with a digest in only one run count as unknown, not as different."""
    theirs = other.manifest.digests
    digests = {name: value for name, value in run.manifest.digests.items() if name != _DOCUMENTS or name in theirs}
    return saved_run(run.manifest.model_copy(update={"digests": digests}), run.tables)


def _differing(found: Comparison, before: Run, number: int) -> Block:
    rows = [word_cells(*line.partition(": ")[::2]) for line in [*found.differing, *found.notes]]
    if not rows:
        return Prose("Settings, packages and commit are the same: what differs is noise, or time.")
    caption = f"What differs from {before.name}"
    return Table(f"differing-{number}", ("what", "before → now"), [_arrowed(row) for row in rows], caption)


def _arrowed(row: Sequence[Cell]) -> list[Cell]:
    return [row[0], Cell(row[1].text.replace(" -> ", " → "))]


def _suite(changes: Sequence[MeasureChange], now: Run, before: Run, number: int) -> Iterator[Block]:
    suite = changes[0].suite
    order = [measure.name for measure in measures_of([now.tables[suite]])]
    rows = [_row(change, now) for change in sorted(changes, key=lambda change: order.index(change.measure))]
    notes = [
        f"Over the cases that have a value in both. p: paired permutation test, adjusted by Holm for these {len(rows)} "
        "measures; the interval is that of gates. gained: queries that got better."
    ]
    yield Table(f"diff-{number}-{suite}", _HEAD, rows, f"{suite}: {now.name} minus {before.name}", notes)
    if suite in now.experiments:
        listed = [change for change in changes if change.measure in _LISTED and (change.gained or change.lost)]
        yield from (_queries(change, now, before, number) for change in listed)


def _row(change: MeasureChange, now: Run) -> list[Cell]:
    measure = now.tables[change.suite].columns[change.measure].measure
    said = [str(change.n), f"{change.before:.3f}", f"{change.now:.3f}"]
    moved_by = Cell(f"{change.difference:+.3f}", _tone(change, better_of(measure)))
    between = interval_said(*change.interval, signed=True) if change.interval else NONE
    counts = str(len(change.gained)), str(len(change.lost))
    return [Cell(measure_title(measure)), *word_cells(*said), moved_by, *word_cells(between, p_said(change.p), *counts)]


def _tone(change: MeasureChange, better: str) -> Tone:
    """Return good or bad for a significant change, where higher or lower is better."""
    if change.p > ALPHA or not excludes_0(change.interval) or not better:
        return ""
    return "good" if (change.difference > 0) == (better == "higher") else "bad"


def _queries(change: MeasureChange, now: Run, before: Run, number: int) -> More:
    title = f"{change.suite}, {name_said(change.measure)}: {len(change.gained)} gained, {len(change.lost)} lost"
    new, old = ComparedExperiment(now, change.suite, now.name), ComparedExperiment(before, change.suite, before.name)
    return More(title, moved(f"moved-{number}-{change.suite}-{change.measure}", new, old, change.measure))
