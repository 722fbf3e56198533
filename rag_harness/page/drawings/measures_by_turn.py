"""A figure of measures by the turns of conversations, and beside each of them its drift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_harness.page.charts import Dot, Dots, Estimate, Lines, Series, dots, lines
from rag_harness.page.content import Cell, Figure, Table
from rag_harness.page.drawings.estimated import estimate_in_words, with_interval
from rag_harness.page.drawings.experiments import MOST_COLOURS, colours_of, drawn_of, equal_notes, left_out
from rag_harness.page.figures import NONE
from rag_harness.page.run import Run
from rag_harness.report.by_turn import Drift, TurnMean, by_turn, drift_of, has_turns
from rag_harness.report.equals import equal_groups
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import counted

_MEASURES = ("recall@5", "answer_correctness", "expectations", "faithfulness", "retention", "token_f1")
_MOST_MEASURES, _MOST_TURNS = 4, 8
_ABOUT_0 = (-0.05, 0.05)
_NOTE = (
    "Bars and lines are 95 % intervals, with conversations as clusters. Drift is the change from one turn to the next, "
    "within conversations: below 0 later turns are worse."
)
_LATER = "{} is turn {} and all later ones."


def turns(run: Run) -> Figure | None:
    """Return the means of each measure by turn, and its drift; None where no case is a turn after the first."""
    tables = {name: table for name, table in run.experiments.items() if has_turns(table)}
    measures = [name for name in _MEASURES if any(table.has(name) for table in tables.values())][:_MOST_MEASURES]
    if not measures:
        return None
    found = [_Measured(name, {each: table for each, table in tables.items() if table.has(name)}) for name in measures]
    groups = equal_groups(tables)
    names = {group[0]: " = ".join(group) for group in groups}
    drawn, places = drawn_of(run, names, MOST_COLOURS), _in_order({turn for each in found for turn in each.turns})
    shown, colours = {name: names[name] for name in drawn}, colours_of(run)
    drawings = [svg for each in found for svg in (_lines(each, places, shown, colours), _dots(each, shown, colours))]
    titles = [title for each in found for title in (f"{each.measure} ↑ by turn", f"drift of {each.measure}, a turn")]
    later = [_LATER.format(turn, turn.rstrip("+")) for turn in places if turn.endswith("+")]
    notes = [_NOTE, *later, *equal_notes(groups), *left_out(run, [*names], drawn)]
    return Figure("Measures by turn", drawings, _table(found, places), notes, titles, "pairs")


@dataclass(frozen=True)
class _Measured:
    """A measure with the experiments that have it."""

    measure: str
    tables: Mapping[str, SuiteTable]

    @cached_property
    def means(self) -> Mapping[str, Mapping[str, TurnMean]]:
        """The means by experiment and turn."""
        found = {name: by_turn(table, self.measure, _MOST_TURNS) for name, table in self.tables.items()}
        return {name: {each.turn: each for each in means} for name, means in found.items()}

    @cached_property
    def drifts(self) -> Mapping[str, Drift | None]:
        return {name: drift_of(table, self.measure) for name, table in self.tables.items()}

    @property
    def turns(self) -> set[str]:
        return {turn for means in self.means.values() for turn in means}

    def at(self, experiment: str, turn: str) -> Estimate | None:
        found = self.means.get(experiment, {}).get(turn)
        return with_interval(found.value, found.interval) if found else None

    def drift(self, experiment: str) -> Estimate | None:
        found = self.drifts.get(experiment)
        return with_interval(found.slope, found.interval) if found else None


def _in_order(turns: set[str]) -> list[str]:
    return sorted(turns, key=lambda turn: (int(turn.rstrip("+")), turn))


def _lines(found: _Measured, places: Sequence[str], names: Mapping[str, str], colours: Mapping[str, int]) -> str:
    series = tuple(
        Series(said, tuple(found.at(name, turn) for turn in places), colours[name])
        for name, said in names.items()
        if name in found.tables
    )
    ident, title = f"turns-{_MEASURES.index(found.measure)}", f"{found.measure} by turn"
    return lines(Lines(ident=ident, title=title, categories=tuple(places), series=series, include=(0.0, 1.0)))


def _dots(found: _Measured, names: Mapping[str, str], colours: Mapping[str, int]) -> str:
    rows = tuple(Dot(said, found.drift(name), colours[name]) for name, said in names.items())
    ident, title = f"drift-{_MEASURES.index(found.measure)}", f"drift of {found.measure}, a turn"
    return dots(Dots(ident=ident, title=title, rows=rows, include=_ABOUT_0))


def _table(found: Sequence[_Measured], places: Sequence[str]) -> Table:
    rows = [_row(each, name, places) for each in found for name in each.tables]
    head = ("experiment", "measure", *(f"turn {turn}" for turn in places), "drift, a turn")
    return Table("figure-turns", head, rows, "Means by turn, and drift, with 95 % intervals")


def _row(found: _Measured, name: str, places: Sequence[str]) -> list[Cell]:
    means, drift = found.means[name], found.drifts[name]
    cells = [
        Cell(estimate_in_words(found.at(name, turn)), hint=f"n = {means[turn].n}") if turn in means else Cell(NONE)
        for turn in places
    ]
    behind = counted(drift.conversations, "conversation") if drift else ""
    return [Cell(name), Cell(found.measure), *cells, Cell(estimate_in_words(found.drift(name), "score"), hint=behind)]
