"""The columns for filters and sorting: a list for each column, in the order of the trials."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan, nan
from typing import Any

from rag_harness.measures import Measure
from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Support
from rag_harness.page.payload.pool import Pool
from rag_harness.report.direction import better_of
from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.row import ExperimentResult

STATES = ("ok", "error", "lost", "left out")
_OF_A_ROW = ("answer", "abstained", "ms", "cost", "confidence")
_OF_NO_ROW: tuple[Any, ...] = ("", 0, None, None, None)


class Columns:
    """The columns as they grow.

    Args:
        tables: tables of all experiments of the report.
    """

    def __init__(self, tables: Iterable[SuiteTable]) -> None:
        self._kinds: Pool[str] = Pool()
        self._causes: Pool[str] = Pool()
        names = ("experiment", "case", "state", "category", "cause", *_OF_A_ROW)
        self._columns: dict[str, list[Any]] = {name: [] for name in names}
        self._measures = {measure.name: measure for table in tables for measure in _measures(table)}
        self._values: dict[str, list[float | None]] = {name: [] for name in self._measures}

    def add(
        self, experiment: int, case: int, table: SuiteTable, position: int, of_row: tuple[Any, ...], cause: str
    ) -> None:
        """Add the trial at ``position`` of a table; ``of_row`` is the result of the function of that name."""
        kind = table.categories[position] if table.categories else ""
        said = (
            experiment,
            case,
            STATES.index(table.state_of(position)),
            self._kinds.number(kind) if kind else -1,
            self._causes.number(cause) if cause else -1,
            *of_row,
        )
        for values, value in zip(self._columns.values(), said, strict=True):
            values.append(value)
        for measure, found in self._values.items():
            found.append(_shown(table, measure, position))

    def said(self) -> dict[str, Any]:
        """Return the columns for the script."""
        return {
            "measures": [_said(measure) for measure in self._measures.values()],
            "categories": self._kinds.values,
            "causes": self._causes.values,
            "states": STATES,
            "trials": {**self._columns, "values": self._values},
        }


def of_row(row: ExperimentResult | None) -> tuple[Any, ...]:
    """Return a row's values in the columns; None stands for a trial without a row."""
    if row is None:
        return _OF_NO_ROW
    return row.llm_answer, int(row.abstained), round(row.total_time_ms, 1), row.cost_usd, row.confidence


def _measures(table: SuiteTable) -> list[Measure]:
    """Return the measures in which trials of the table have a value."""
    return [column.measure for name, column in table.columns.items() if table.has(name)]


def _said(measure: Measure) -> dict[str, Any]:
    """Return the data of a measure for the script; ``claims`` names the text with the claims, and their sources."""
    said: dict[str, Any] = {"name": measure.name, "better": better_of(measure), "unit": measure.unit}
    asked = [ask for ask in measure.asks if isinstance(ask, Support)] if isinstance(measure, JudgedMeasure) else []
    return said | ({"claims": list(asked[0])} if asked else {})


def _shown(table: SuiteTable, measure: str, position: int) -> float | None:
    """Return the value of a case, rounded for people."""
    column = table.columns.get(measure)
    value = nan if column is None else float(column.values[position])
    return None if isnan(value) else float(f"{value:.4g}")
