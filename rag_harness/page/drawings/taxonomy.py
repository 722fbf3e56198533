"""A figure of the categories of answers: a pie for each experiment, and bars, which are easier to compare."""

from __future__ import annotations

from collections import Counter

from rag_harness.measures.judged.categories import kinds_shown
from rag_harness.page.charts import Pie, PieSlice, Stacked, StackedBar, pie, stacked
from rag_harness.page.content import Cell, Figure, Table, word_cells
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable


def taxonomy(run: Run) -> Figure | None:
    """Return the categories of each experiment's answers; None where the measures that define them were not judged."""
    counted = {name: count for name, table in run.experiments.items() if (count := _kinds(table))}
    if not counted:
        return None
    told = kinds_shown(kind for count in counted.values() for kind in count)
    kinds = [kind for kind in told if any(count[kind] for count in counted.values())]
    rows = tuple(StackedBar(name, tuple(float(count[kind]) for kind in kinds)) for name, count in counted.items())
    title = "Kinds of answers"
    bars = stacked(Stacked(ident="taxonomy", title=title, parts=tuple(kinds), rows=rows))
    pies = [_pie(name, count, kinds) for name, count in counted.items()]
    cells = [[Cell(kind), *word_cells(*(f"{count[kind]:,}" for count in counted.values()))] for kind in told]
    table = Table("figure-taxonomy", ("kind of answer", *counted), cells, "Answers of each kind")
    note = "Pies show what an experiment is made of; to compare experiments, read the bars."
    return Figure(title, [bars, *pies], table, [note], ["", *counted], "first")


def _kinds(table: SuiteTable) -> Counter[str]:
    return Counter(kind for kind in table.categories or () if kind)


def _pie(name: str, count: Counter[str], kinds: list[str]) -> str:
    slices = tuple(PieSlice(kind, float(count[kind])) for kind in kinds)
    return pie(Pie(ident=f"taxonomy-{safe(name)}", title=f"{name}: {count.total():,} answers", slices=slices))


def safe(name: str) -> str:
    """Return a name in the form of an id. Different names stay different."""
    return "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):x}-" for c in name)
