"""What a reader has to know before trusting the figures: experiments of earlier runs, and verdicts on other rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rag_harness.page.comment.room import Room
from rag_harness.page.run import Run
from rag_harness.report.provenance import time_said


def note_lines(run: Run, room: Room) -> Iterator[str]:
    """Yield the notes; of many the first."""
    notes = [*_of_earlier_runs(run), *_other_rows(run)]
    yield from (f"- ❔ {room.said(note)}" for note in notes[: room.few])
    if len(notes) > room.few:
        yield f"- ❔ … and {len(notes) - room.few:,} more notes of this kind; the report has them."


def _of_earlier_runs(run: Run) -> Iterator[str]:
    for name in run.selected:
        record = run.suites[name]
        if record.made:
            other = ", with other code or settings" if record.is_current is False else ""
            yield f"{name} is of an earlier run, of {time_said(record.made)}{other}; the last one did not look at it."


def _other_rows(run: Run) -> Iterator[str]:
    for name, table in run.selected.items() if run.gates else ():
        judged, lost = run.summary.get(name), table.lost_of({})
        then = judged.get("lost", lost) if isinstance(judged, Mapping) else lost
        if then != lost:
            yield (
                f"The gates were judged on other rows of {name}: {then} trials had no row then, {lost} have none now. "
                "Run pytest again, so that gates and figures are of the same rows."
            )
