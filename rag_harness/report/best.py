"""Which experiment is the best on a measure, where the tests say so and not the means alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from rag_harness.report.pairwise import Cell
from rag_harness.report.suite_table import SuiteTable


def best_of(measure: str, tables: Mapping[str, SuiteTable], cells: Sequence[Cell]) -> str:
    """Return the experiment that is better than every other with values of ``measure``; empty where none is.

    Better is what both tests of ``cells`` call significant, after Holm's correction.
    """
    having = {name for name, table in tables.items() if table.has(measure)}
    won = Counter(_winner(cell, tables) for cell in cells if _is_won(cell, measure) and cell.first in having)
    return next((name for name, wins in won.items() if wins == len(having) - 1), "")


def _is_won(cell: Cell, measure: str) -> bool:
    return cell.measure == measure and cell.quantile is None and cell.is_significant


def _winner(cell: Cell, tables: Mapping[str, SuiteTable]) -> str:
    assert cell.found is not None
    lower = tables[cell.first].columns[cell.measure].measure.better == "lower"
    return cell.first if (cell.found.difference > 0) != lower else cell.second
