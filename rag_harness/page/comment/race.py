"""The race of ``rag-harness tune`` in Markdown: its sentences, and the table of its configurations."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.derived.tuning.outcome import RaceOutcome, read_outcome
from rag_harness.derived.tuning.outcome_text import sentences
from rag_harness.page.comment.room import Room, table_rows
from rag_harness.page.run import Run
from rag_harness.page.sections.race import HEAD, race_rows
from rag_harness.report.wording import counted
from rag_harness.shown.markdown import plain


def race_lines(run: Run, room: Room) -> Iterator[str]:
    """Yield the race in the folder of a run, folded; nothing where there was none.

    Raises:
        DataError: the file of the race cannot be read.
    """
    outcome = read_outcome(run.output)
    if outcome is None:
        return
    first, *others = sentences(outcome)
    # A comment has a number of lines for all of it. The page and race_text have every configuration.
    yield f"<details><summary>The race of configurations: {room.said(first)}</summary>"
    yield ""
    yield " ".join(room.said(each) for each in others)
    yield ""
    shown = race_rows(outcome)[: room.few]
    yield from table_rows(_head(outcome), [[room.named(name, 2), *map(room.short, more)] for name, *more in shown])
    yield ""
    if len(outcome.entries) > len(shown):
        yield f"… and {counted(len(outcome.entries) - len(shown), 'configuration')} more."
        yield ""
    yield "</details>"


def race_text(outcome: RaceOutcome) -> str:
    """Return the whole race as Markdown, for a folder that has no run."""
    said = [f"- {plain(each)}" for each in sentences(outcome)]
    rows = [list(map(plain, row)) for row in race_rows(outcome)]
    lines = ["## The race of configurations", "", *said, "", *table_rows(_head(outcome), rows)]
    return "".join(f"{line}\n" for line in lines)


def _head(outcome: RaceOutcome) -> list[str]:
    return ["configuration", *map(plain, outcome.objective), *HEAD]
