"""Finds the best experiments on a measure by significance tests, not by means alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rag_harness.report.pairwise import PairDifference
from rag_harness.report.suite_table import SuiteTable


def best_of(measure: str, tables: Mapping[str, SuiteTable], cells: Sequence[PairDifference]) -> frozenset[str]:
    """Return the experiments that are better than every other with values of ``measure``; empty where there is none.

    An experiment is better where both tests of ``cells`` are significant after Holm's correction. Experiments with the
    same value on every case win together: neither is better than the other, and each is better than all others.
    """
    having = {name for name, table in tables.items() if table.has(measure)}
    mine = [each for each in cells if each.measure == measure and each.quantile is None and each.found]
    beats = {(_winner(each, tables), _loser(each, tables)) for each in mine if each.is_significant}
    same = {pair for each in mine if each.is_level for pair in ((each.first, each.second), (each.second, each.first))}
    best = {
        name
        for name in having
        if any((name, other) in beats for other in having)
        and all(other == name or (name, other) in beats | same for other in having)
    }
    # Random sign flips differ a little between pairs. Where only one of two equal experiments wins, neither does.
    return frozenset(best if all(twin in best for name, twin in same if name in best) else ())


def _winner(cell: PairDifference, tables: Mapping[str, SuiteTable]) -> str:
    assert cell.found is not None
    lower = tables[cell.first].columns[cell.measure].measure.better == "lower"
    return cell.first if (cell.found.difference > 0) != lower else cell.second


def _loser(cell: PairDifference, tables: Mapping[str, SuiteTable]) -> str:
    return cell.second if _winner(cell, tables) == cell.first else cell.first
