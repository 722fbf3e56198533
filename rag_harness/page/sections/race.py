"""The race of ``rag-harness tune``: what it chose and how sure that is, every configuration, two drawings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_harness.derived.tuning.outcome import Entry, RaceOutcome, read_outcome
from rag_harness.derived.tuning.outcome_text import figure_cell, race_fate, sentences
from rag_harness.page.content import Block, Cell, Prose, Section, Table, Tone, word_cells
from rag_harness.page.drawings.race import race_course, race_front
from rag_harness.page.run import Run

HEAD = ("characters of context", "in the race")


def race(runs: Sequence[Run]) -> Section | None:
    """Return the race in the folder of the first run; None where there was none.

    Raises:
        DataError: the file of the race cannot be read.
    """
    outcome = read_outcome(runs[0].output)
    return None if outcome is None else race_section(outcome)


def race_section(outcome: RaceOutcome) -> Section:
    """Return what came of a race."""
    return Section("race", "The race of configurations", list(_blocks(outcome)))


def race_rows(outcome: RaceOutcome) -> list[list[str]]:
    """Return a row for each configuration, the best first: its name, figures, context, and what became of it."""
    return [
        [
            f"{each.title} (today)" if each.name == outcome.today and each.title != "today" else each.title,
            *(figure_cell(each, name) for name in outcome.objective),
            f"{each.context:,.0f}",
            race_fate(outcome, each),
        ]
        for each in outcome.entries
    ]


def _blocks(outcome: RaceOutcome) -> Iterator[Block]:
    first, *others = sentences(outcome)
    yield Prose(first, "good" if outcome.held_out else "unsure")
    yield from map(Prose, others)
    yield race_front(outcome)
    yield race_course(outcome)
    rows = [
        [Cell(name), *word_cells(*figures), Cell(fate, _tone(outcome, each))]
        for each, (name, *figures, fate) in zip(outcome.entries, race_rows(outcome), strict=True)
    ]
    notes = [
        "Figures are those of the race, with 95 % intervals; that of the best is too good, for it was chosen by it."
    ]
    notes += [f"{n} combinations were left out: {why} would not fit." for why, n in outcome.left_out.items()]
    yield Table("race", ("configuration", *outcome.objective, *HEAD), rows, "All configurations, the best first", notes)


def _tone(outcome: RaceOutcome, entry: Entry) -> Tone:
    if entry.name == outcome.winner:
        return "good"
    return "bad" if entry.left_after or entry.why else "mute" if entry.aside_after else ""
