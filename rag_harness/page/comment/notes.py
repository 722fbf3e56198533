"""What a reader has to know before trusting the figures: experiments of earlier runs, and verdicts on other rows."""

from __future__ import annotations

from collections.abc import Iterator

from rag_harness.page.caveats import caveats
from rag_harness.page.comment.room import Room
from rag_harness.page.run import Run


def note_lines(run: Run, room: Room) -> Iterator[str]:
    """Yield the notes; of many the first."""
    notes = [*caveats(run)]
    yield from (f"- ❔ {room.said(note)}" for note in notes[: room.few])
    if len(notes) > room.few:
        yield f"- ❔ … and {len(notes) - room.few:,} more notes of this kind; the report has them."
