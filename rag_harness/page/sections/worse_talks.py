"""The conversations that got worse between two runs; each leads to its first turn that did, both runs side by side."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.page.content import Cell, More, Table
from rag_harness.page.figures import name_said
from rag_harness.page.run import Run
from rag_harness.report.comparison import MeasureChange
from rag_harness.report.run_diff import RunDiff
from rag_harness.report.worse_conversations import WorseConversation
from rag_harness.types import TrialId

SHOWN_TALKS = 20
_HEAD = ("conversation", "worse from", "change of its mean")
_NOTE = "A conversation got worse where the mean over its turns did. Its link shows both runs side by side."


def worse_talks(diff: RunDiff, now: Run, before: Run, number: int) -> Iterator[More]:
    """Yield the conversations of each experiment that got worse, folded; ``number`` is that of the run before."""
    for change in diff.worse_talks:
        if change.suite in now.experiments and change.conversations:
            title = f"{change.suite}: conversations that got worse in {name_said(change.measure)}"
            worse = change.conversations.worse
            rows = [_row(change, each, now, before) for each in worse[:SHOWN_TALKS]]
            more = [f"and {len(worse) - SHOWN_TALKS} more"] if len(worse) > SHOWN_TALKS else []
            yield More(title, [Table(f"worse-talks-{number}-{change.suite}", _HEAD, rows, notes=[_NOTE, *more])])


def _row(change: MeasureChange, each: WorseConversation, now: Run, before: Run) -> list[Cell]:
    trial, by = TrialId(change.suite, each.case), -each.by if change.better == "higher" else each.by
    turn = Cell(f"turn {each.turn}", trial=now.address(trial), beside=before.address(trial))
    return [Cell(each.conversation), turn, Cell(f"{by:+.3f}", "bad")]
