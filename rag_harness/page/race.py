"""The race of rag-harness tune in the report: its section and its figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rag_harness.diagnosis.tuning.outcome import (
    Entry,
    RaceFigure,
    RaceOutcome,
    figure_cell,
    race_fate,
    read_outcome,
    sentences,
)
from rag_harness.evaluation.measures import measure_named
from rag_harness.page.charts import Estimate, Point, Scatter, Staircase, scatter, staircase
from rag_harness.page.charts.plots import Better
from rag_harness.page.content import Block, Cell, Figure, Prose, Section, Table, Tone, word_cells
from rag_harness.page.run import Run

_KINDS: Mapping[str, int] = {
    "chosen": 3,
    "today": 1,
    "not told apart": 0,
    "set aside": 14,
    "breaks a constraint": 7,
    "left": 5,
}
"""The colour and shape of each kind of configuration. That of those that were set aside is hollow."""
_CONTEXT = "characters of context"


def race_course(outcome: RaceOutcome) -> Figure:
    """Return how many configurations were still in, by the number of questions that were asked."""
    begun = len(outcome.entries) - (outcome.screened[1] if outcome.screened else 0)
    looks = [(0, max(begun, outcome.looks[0][1] if outcome.looks else 0)), *outcome.looks]
    title = "Who was still in the race"
    chart = Staircase(
        ident="race-course",
        title=title,
        steps=tuple(looks),
        x_label="questions asked",
        y_label="configurations in the race",
    )
    kept = [look for at, look in enumerate(looks) if at in (0, len(looks) - 1) or look[1] != looks[at - 1][1]]
    table = Table("race-course", (chart.x_label, chart.y_label), [word_cells(str(n), str(left)) for n, left in kept])
    notes = []
    if outcome.screened:
        measure, gone = outcome.screened
        notes.append(f"Before any answer was asked for, {gone} of {len(outcome.entries)} left by {measure}.")
    if outcome.asks_answers:
        notes.append("Some of them are shown to be worse; others are set aside, of which nothing is claimed.")
    return Figure(title, [staircase(chart)], table, notes)


def race_front(outcome: RaceOutcome) -> Figure:
    """Return each configuration by the first measure of the objective, and by the second or by its context."""
    first, *more = outcome.objective
    across = more[0] if more else _CONTEXT
    both = {each.name: (_across(each, more), each.figures.get(first)) for each in outcome.entries}
    kinds = {each.name: kind_in_race(outcome, each) for each in outcome.entries}
    drawn = [each for each in outcome.entries if all(both[each.name])]
    points = tuple(
        Point(each.title, x, _estimate(y), _KINDS[kinds[each.name]])
        for each in drawn
        for x, y in [both[each.name]]
        if x is not None and y is not None
    )
    title = f"{first} against {across}"
    chart = Scatter(
        ident="race-front",
        title=title,
        points=points,
        x_label=across,
        y_label=first,
        better_x=_better(more[0]) if more else "low",
        better_y=_better(first),
        named=tuple(each.title for each in drawn if each.name in (outcome.winner, outcome.today)),
        kinds=tuple((name, number) for name, number in _KINDS.items() if name in kinds.values()),
    )
    rows = [
        [Cell(each.title), *word_cells(_said(each, more), figure_cell(each, first), kinds[each.name])] for each in drawn
    ]
    table = Table("figure-race", ("configuration", across, first, "in the race"), rows, "With 95 % intervals")
    notes = [
        "Figures are of the race. The stepped line joins the configurations that no other beats on both; they, the "
        "chosen one and today's have their 95 % intervals, and all have them as titles."
    ]
    if len(drawn) < len(outcome.entries):
        notes.append(f"{len(outcome.entries) - len(drawn)} without both figures are not drawn.")
    return Figure(title, [scatter(chart)], table, notes)


def kind_in_race(outcome: RaceOutcome, entry: Entry) -> str:
    """Return the kind of a configuration, by which its mark is drawn."""
    if entry.name == outcome.winner:
        return "chosen"
    if entry.name == outcome.today:
        return "today"
    if entry.why:
        return "breaks a constraint"
    return "left" if entry.left_after else "set aside" if entry.aside_after else "not told apart"


def _across(entry: Entry, more: list[str]) -> Estimate | None:
    if not more:
        return Estimate(entry.context)
    figure = entry.figures.get(more[0])
    return None if figure is None else _estimate(figure)


def _said(entry: Entry, more: list[str]) -> str:
    return figure_cell(entry, more[0]) if more else f"{entry.context:,.0f}"


def _estimate(figure: RaceFigure) -> Estimate:
    # The mean of equal values may differ from both ends by rounding.
    return Estimate(figure.value, min(figure.low, figure.value), max(figure.high, figure.value))


def _better(name: str) -> Better:
    return "low" if measure_named(name).better == "lower" else "high"


# The race of ``rag-harness tune``: what it chose and how sure that is, every configuration, two drawings.

HEAD = ("characters of context", "in the race")


def race(runs: Sequence[Run]) -> Section | None:
    """Return the race in the folder of the first run; None where there was none.

    Raises:
        DataError: the file of the race cannot be read.
    """
    outcome = read_outcome(runs[0].output)
    return None if outcome is None else race_section(outcome)


def race_section(outcome: RaceOutcome) -> Section:
    """Return the outcome of a race."""
    return Section("race", "The race of configurations", list(_blocks(outcome)))


def race_rows(outcome: RaceOutcome) -> list[list[str]]:
    """Return a row for each configuration, the best first: its name, figures, context, and its fate in the race."""
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
