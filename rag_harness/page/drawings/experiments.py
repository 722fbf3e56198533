"""Which experiments are drawn, and in which colours: the same in every figure of a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import TypeVar

from rag_harness.page.charts import Curve, Histogram, Lines
from rag_harness.page.content import Figure, Table
from rag_harness.page.drawings.estimated import QUALITY
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.wording import joined_names

MOST_COLOURS = 8
"""More colours cannot be told apart. More experiments have one colour, and each has a chart or a row of its own."""
_MOST_DRAWN = 16
_Split = TypeVar("_Split", Curve, Histogram, Lines)


def colours_of(run: Run) -> Mapping[str, int]:
    """Return the number of each experiment's colour and shape."""
    has_own = len(run.experiments) <= MOST_COLOURS
    return {name: place if has_own else 0 for place, name in enumerate(run.experiments)}


def drawn_of(run: Run, found: Iterable[str], most: int = _MOST_DRAWN) -> list[str]:
    """Return the experiments among ``found`` that are drawn, in their order: the best ``most`` where there are more.

    The best are those with the highest mean of the first measure of quality that one of them has.
    """
    names = list(found)
    if len(names) <= most:
        return names
    measure = _quality(run, names)
    ranked = sorted(names, key=lambda name: -_mean(run.tables[name], measure))
    return [name for name in names if name in ranked[:most]]


def left_out(run: Run, found: Sequence[str], drawn: Sequence[str]) -> list[str]:
    """Return a note about experiments that have data and are not drawn; nothing where all are drawn."""
    if len(drawn) == len(found):
        return []
    measure = _quality(run, found)
    chosen = f"with the highest {measure}" if measure else "that come first"
    return [f"Drawn are the {len(drawn)} of {len(found)} experiments {chosen}. The table below has all of them."]


def together_or_apart(
    chart: _Split, draw: Callable[[_Split], str], table: Table, notes: Sequence[str], axes: str = ""
) -> Figure:
    """Return the figure of all series in one drawing; where they are more than there are colours, a small one for each.

    ``axes`` says what the axes are, for small drawings have no room for it; "" where the notes say so.
    """
    if len(chart.series) <= MOST_COLOURS:
        return Figure(chart.title, [draw(chart)], table, notes)
    drawings = [draw(each) for each in chart.apart()]
    return Figure(chart.title, drawings, table, [axes, *notes] if axes else notes, layout="small")


def equal_notes(groups: Iterable[Sequence[str]]) -> list[str]:
    """Return a note for each group of equal experiments."""
    return [
        f"{joined_names(group)} have the same value of every measure on every case, and are drawn once."
        for group in groups
        if len(group) > 1
    ]


def _mean(table: SuiteTable, measure: str) -> float:
    found = table.aggregate([measure])[measure] if measure in table.columns else None
    return -inf if found is None else found


def _quality(run: Run, names: Iterable[str]) -> str:
    tables = [run.tables[name] for name in names]
    return next((measure for measure in QUALITY if any(table.has(measure) for table in tables)), "")
