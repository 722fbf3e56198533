"""A figure of the kinds of answers: a bar for each experiment, and one pie, which the study's method asks for."""

from __future__ import annotations

from collections import Counter

from rag_harness.measures.judged.categories import kinds_shown
from rag_harness.page.charts import Pie, PieSlice, Stacked, StackedBar, pie, stacked
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.experiments import drawn_of, left_out
from rag_harness.page.drawings.kinds_of_answers import kind_fill
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable


def taxonomy(run: Run) -> Figure | None:
    """Return the kinds of each experiment's answers; None where the measures that define them were not judged.

    There is one pie: of the last experiment, in the order of the run.
    """
    counted = {name: count for name, table in run.experiments.items() if (count := _kinds(table))}
    if not counted:
        return None
    told = kinds_shown(kind for count in counted.values() for kind in count)
    kinds = [kind for kind in told if any(count[kind] for count in counted.values())]
    drawn = drawn_of(run, counted)
    rows = tuple(StackedBar(name, tuple(float(counted[name][kind]) for kind in kinds)) for name in drawn)
    colours, title = tuple(map(kind_fill, kinds)), "Categories of answers"
    bars = stacked(Stacked(ident="taxonomy", title=title, parts=tuple(kinds), rows=rows, colours=colours))
    last = [*counted][-1]
    cells = [[Cell(kind, kind=kind), *word_cells(*(f"{count[kind]:,}" for count in counted.values()))] for kind in told]
    table = Table("figure-taxonomy", ("category", *counted), cells, "Answers of each category")
    notes = [
        f"The pie is of {last}, the last experiment whose answers have categories.",
        *left_out(run, [*counted], drawn),
    ]
    return Figure(title, [bars, _pie(last, counted[last], kinds)], table, notes, ["", last])


def _kinds(table: SuiteTable) -> Counter[str]:
    return Counter(kind for kind in table.categories or () if kind)


def _pie(name: str, count: Counter[str], kinds: list[str]) -> str:
    slices = tuple(PieSlice(kind, float(count[kind]), kind_fill(kind)) for kind in kinds)
    return pie(Pie(ident="taxonomy-pie", title=f"{name}: {count.total():,} answers", slices=slices))
