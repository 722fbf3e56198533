"""Experiments that are equal: they have the same value of every measure on every case."""

from __future__ import annotations

from collections.abc import Mapping

from rag_harness.report.suite_table import SuiteTable

_TIMES_AND_COST = ("ms", "usd", "tokens")
"""Units of measures that differ from one call to the next."""


def equal_groups(tables: Mapping[str, SuiteTable]) -> list[list[str]]:
    """Return the experiments in groups of equal ones, times and costs left out; one without any value is alone."""
    groups: dict[object, list[str]] = {}
    for name, table in tables.items():
        groups.setdefault(_values_of(table) or name, []).append(name)
    return list(groups.values())


def _values_of(table: SuiteTable) -> object:
    """Return what is equal for tables with equal values, None without any.

    Arrays are compared as bytes: a run may have 20,000 trials.
    """
    quality = {name: column for name, column in table.columns.items() if column.measure.unit not in _TIMES_AND_COST}
    valued = frozenset((name, column.values.tobytes()) for name, column in quality.items() if table.has(name))
    return (tuple(table.ids), table.states.tobytes(), valued) if valued else None
