"""A figure of the kinds of answers: a bar and a pie, which the study's method asks for, of each experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rag_harness.measures.judged.categories import (
    ANSWERED_UNANSWERABLE,
    CORRECT_ABSTENTION,
    UNMEASURED,
    WRONG_ABSTENTION,
    kinds_shown,
)
from rag_harness.page.charts import Pie, PieSlice, Stacked, StackedBar, pie, stacked
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.drawings.experiments import drawn_of, left_out
from rag_harness.page.drawings.kinds_of_answers import kind_fill
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import joined_names

_NEED_NO_CONTEXT = {CORRECT_ABSTENTION, WRONG_ABSTENTION, ANSWERED_UNANSWERABLE, UNMEASURED}


def taxonomy(run: Run) -> Figure | None:
    """Return the kinds of each experiment's answers; None where the measures that define them were not judged."""
    counted = {name: count for name, table in run.experiments.items() if (count := _kinds(table))}
    if not counted:
        return None
    told = kinds_shown(kind for count in counted.values() for kind in count)
    kinds = [kind for kind in told if any(count[kind] for count in counted.values())]
    drawn = drawn_of(run, counted)
    rows = tuple(StackedBar(name, tuple(float(counted[name][kind]) for kind in kinds)) for name in drawn)
    colours, title = tuple(map(kind_fill, kinds)), "Categories of answers"
    bars = stacked(Stacked(ident="taxonomy", title=title, parts=tuple(kinds), rows=rows, colours=colours))
    pies = [_pie(f"taxonomy-pie-{place}", name, counted[name], kinds) for place, name in enumerate(drawn)]
    cells = [[Cell(kind, kind=kind), *word_cells(*(f"{count[kind]:,}" for count in counted.values()))] for kind in told]
    table = Table("figure-taxonomy", ("category", *counted), cells, "Answers of each category")
    notes = [*_without_context(run, counted), *left_out(run, [*counted], drawn)]
    return Figure(title, [bars, *pies], table, notes, ["", *drawn])


def _without_context(run: Run, counted: Mapping[str, Counter[str]]) -> list[str]:
    """Say which experiments have categories for those answers alone that need no context."""
    names = [name for name, count in counted.items() if not {*count} - _NEED_NO_CONTEXT and count[UNMEASURED]]
    names = [name for name in names if not run.tables[name].totals.retrieves]
    if not names:
        return []
    has, its = ("has", "its") if len(names) == 1 else ("have", "their")
    return [
        f"{joined_names(names)} {has} no context: of {its} answers only those have a category that decline, or that "
        f"answer what the documents do not. The others are {UNMEASURED}."
    ]


def _kinds(table: SuiteTable) -> Counter[str]:
    return Counter(kind for kind in table.categories or () if kind)


def _pie(ident: str, name: str, count: Counter[str], kinds: list[str]) -> str:
    slices = tuple(PieSlice(kind, float(count[kind]), kind_fill(kind)) for kind in kinds)
    return pie(Pie(ident=ident, title=f"{name}: {count.total():,} answers", slices=slices))
