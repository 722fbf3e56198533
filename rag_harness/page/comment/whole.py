"""Puts the parts of a comment together, so that it is never too long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_harness.page.comment.changes import Change, change_lines, changes_in_comment
from rag_harness.page.comment.experiments import experiment_lines
from rag_harness.page.comment.folded import folded_lines
from rag_harness.page.comment.links import Links
from rag_harness.page.comment.notes import note_lines
from rag_harness.page.comment.race import race_lines
from rag_harness.page.comment.room import Room
from rag_harness.page.comment.verdict import gate_lines, run_line, verdict_line
from rag_harness.page.comment.worst import Worst, worst_lines, worst_of
from rag_harness.page.outcome import last_run_lines
from rag_harness.page.run import Run
from rag_harness.report.brief import Brief, Sentence, first_sentences

MOST_LINES, MOST_CHARACTERS = 60, 8_000
"""A reader of a pull request reads no more. GitHub takes 65,536 characters."""
_ROWS = (10, 8, 7, 6, 5, 4, 3, 2)
_TEXTS = ((80, 600), (60, 450), (50, 330), (40, 240), (30, 180), (24, 120))
"""Room for rows, and for names and sentences. The most generous that fits is taken; the last always fits."""
_TOPICS = {
    "found": "What was found",
    "wrong": "Wrong answers",
    "best": "Which is best",
    "sure": "How sure",
    "why": "Why",
    "next": "Next",
}
_SIGNS = {"good": "✅ ", "bad": "❌ ", "unsure": "❔ "}
_SENTENCES = 2


def comment_of(runs: Sequence[Run], report: str = "") -> str:
    """Return the comment on the first run, set against the others.

    Args:
        runs: the runs, that of now first.
        report: address of the report as a page, for links to its trials; empty where it is not known.

    Raises:
        DataError: the cases of a run are missing or damaged, or its causes are.
    """
    run = runs[0]
    brief = run.brief
    found = _Found(
        brief, first_sentences(brief), run, [*changes_in_comment(runs)], [*worst_of(brief, run)], Links(run, report)
    )
    # How many lines there are does not depend on how long they are.
    narrow = _TEXTS[-1]
    rows = next((n for n in _ROWS if found.text(Room(n, *narrow)).count("\n") <= MOST_LINES), _ROWS[-1])
    rooms = [Room(n, *widths) for n in (rows, _ROWS[-1]) for widths in _TEXTS]
    return next((text for text in map(found.text, rooms) if len(text) <= MOST_CHARACTERS), found.text(rooms[-1]))


@dataclass(frozen=True, slots=True)
class _Found:
    """What a comment is about."""

    brief: Brief
    sentences: Sequence[Sentence]
    run: Run
    changes: Sequence[Change]
    worst: Sequence[Worst]
    links: Links

    def text(self, room: Room) -> str:
        """Return the comment."""
        return "\n\n".join("\n".join(part) for part in self._parts(room) if part) + "\n"

    def _parts(self, room: Room) -> Iterator[list[str]]:
        brief, run = self.brief, self.run
        yield [verdict_line(brief, run)]
        yield [room.said(each) for each in last_run_lines(run)]
        yield [run_line(brief, run, room)]
        yield [*gate_lines(brief, run, room, self.links)]
        yield [*_sentences(self.sentences, room), *note_lines(run, room)]
        yield [*experiment_lines(brief, run, room)]
        yield [*change_lines(self.changes, room, self.links)]
        yield [*worst_lines(self.worst, room, self.links)]
        yield [*race_lines(run, room)]
        yield [*folded_lines(brief, run, room)]


def _sentences(sentences: Sequence[Sentence], room: Room) -> Iterator[str]:
    """Yield which is best, how sure, why answers are wrong, and what to do next; for the first data."""
    for topic, title in _TOPICS.items():
        said = [sentence for sentence in sentences if sentence.topic == topic]
        for sentence in said[: min(_SENTENCES, room.few)]:
            yield f"- {_SIGNS.get(sentence.tone, '')}**{title}:** {room.said(sentence.text)}"
