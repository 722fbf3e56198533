"""Changes between runs: from each run before to now, in sentences, then suite by suite and query by query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.errors import DataError
from rag_harness.page.content import Block, Cell, More, Prose, Section, Table, Tone, word_cells
from rag_harness.page.figures import NONE, interval_said, measure_title, name_said
from rag_harness.page.run import DOCUMENTS, Run
from rag_harness.page.sections.moved import ComparedExperiment, moved
from rag_harness.page.sections.worse_talks import worse_talks
from rag_harness.report.comparison import Comparison, MeasureChange
from rag_harness.report.comparison_lines import folded_said, p_or_seen
from rag_harness.report.run_diff import RunDiff, run_diff
from rag_harness.report.run_diff_sentences import same_said, sentences

_HEAD = ("measure", "n", "before", "now", "difference", "interval", "p (Holm)", "gained", "lost")
_LISTED = ("g_mean", "hri", "answer_correctness", "faithfulness", "recall@5", "token_f1")
"""Measures whose queries are listed; for other measures they are counted."""
_UNKNOWN = (
    "Nobody can tell whether the documents are the same: both runs have to keep that (--rag-save or --rag-compare). "
    "So a difference may come from other documents."
)


def diff(runs: Sequence[Run]) -> Section | None:
    """Return the changes from each other run to the first, which is now; None for a single run."""
    if len(runs) < 2:
        return None
    blocks = [block for number, before in enumerate(runs[1:], 1) for block in _against(runs[0], before, number)]
    return Section("diff", "Changes between runs", blocks)


def _against(now: Run, before: Run, number: int) -> Iterator[Block]:
    try:
        found = now.compared_with(before)
    except DataError as error:
        # Only this pair cannot be compared; the other runs are still shown.
        yield Prose(f"{now.name} is not set against {before.name}. {error}", "bad")
        return
    diff = run_diff(found)
    yield from (Prose(sentence.text, sentence.tone) for sentence in sentences(diff))
    yield Prose(f"Before is {before.name}, of {found.before}. Now is {now.name}, of {found.now}.")
    if found.is_same_run:
        return
    if not _documents_known(now, before):
        yield Prose(_UNKNOWN, "unsure")
    yield from _differing(found, number)
    yield from worse_talks(diff, now, before, number)
    for suite in diff.suites:
        yield from _suite(diff, suite, now, before, number) if diff.rows(suite) else ()
    if equal := [suite for suite in diff.suites if not diff.rows(suite)]:
        yield Prose(f"The same in every case of both runs: {', '.join(equal)}.")


def first_change(runs: Sequence[Run]) -> list[Prose]:
    """Return the first sentence about what changed from the second run to the first; empty where there is none."""
    if len(runs) < 2:
        return []
    try:
        found = runs[0].compared_with(runs[1])
    except DataError:  # the section says why
        return []
    return [Prose(sentence.text, sentence.tone) for sentence in [*sentences(run_diff(found))][:1]]


def _documents_known(now: Run, before: Run) -> bool:
    kept = all(DOCUMENTS in run.manifest.digests for run in (now, before))
    shared = [name for name in now.selected if name in before.selected]
    return kept or all(run.suites[name].pages for name in shared for run in (now, before))


def _differing(found: Comparison, number: int) -> Iterator[Block]:
    rows = [word_cells(*line.partition(": ")[::2]) for line in [*found.differing, *found.notes]]
    if rows:
        head = ("what", "before → now")
        yield More(
            "What differs between the two runs, and what is not compared",
            [Table(f"differing-{number}", head, [_arrowed(row) for row in rows])],
        )


def _arrowed(row: Sequence[Cell]) -> list[Cell]:
    return [row[0], Cell(row[1].text.replace(" -> ", " → "))]


def _suite(diff: RunDiff, suite: str, now: Run, before: Run, number: int) -> Iterator[Block]:
    """Yield the measures of a suite that differ; folded where none changed more than chance explains."""
    changes = diff.rows(suite)
    blocks = [*_tables(changes, same_said(diff.same_of(suite)), suite, now, before, number)]
    if diff.changed(suite):
        yield from blocks
    elif blocks:
        yield More(folded_said(diff, suite), blocks)


def _tables(
    changes: Sequence[MeasureChange], same: str, suite: str, now: Run, before: Run, number: int
) -> Iterator[Block]:
    if changes:
        note = (
            "Over the cases that have a value in both. p: paired permutation test; the interval is that of gates. "
            "Both are adjusted by Holm for the tested measures that differ. gained: queries that got better."
        )
        rows = [_row(change, now) for change in changes]
        yield Table(f"diff-{number}-{suite}", _HEAD, rows, f"{suite}: from {before.name} to {now.name}", [note])
    if same:
        yield Prose(f"{same}.")
    if suite in now.experiments:
        listed = [change for change in changes if change.measure in _LISTED]
        yield from (_queries(change, now, before, number) for change in listed)


def _row(change: MeasureChange, now: Run) -> list[Cell]:
    measure = now.tables[change.suite].columns[change.measure].measure
    said = [str(change.n), f"{change.before:.3f}", f"{change.now:.3f}"]
    moved_by = Cell(f"{change.difference:+.3f}", _tone(change))
    between = interval_said(*change.interval, signed=True) if change.interval else NONE
    counts = (str(len(change.gained)), str(len(change.lost))) if change.better else (NONE, NONE)
    return [
        Cell(measure_title(measure)),
        *word_cells(*said),
        moved_by,
        *word_cells(between, p_or_seen(change), *counts),
    ]


def _tone(change: MeasureChange) -> Tone:
    """Return good or bad for a change that chance hardly explains, where higher or lower is better."""
    tones: dict[str, Tone] = {"better": "good", "worse": "bad", "changed": ""}
    return tones[change.direction] if change.is_sure else ""


def _queries(change: MeasureChange, now: Run, before: Run, number: int) -> More:
    counts = f"{len(change.gained)} gained, {len(change.lost)} lost"
    if not change.better:
        counts = f"{len(change.rose) + len(change.fell)} changed"
    title = f"{change.suite}, {name_said(change.measure)}: {counts}"
    new, old = ComparedExperiment(now, change.suite, now.name), ComparedExperiment(before, change.suite, before.name)
    return More(title, moved(f"moved-{number}-{change.suite}-{change.measure}", new, old, change.measure))
