"""A table's means with their intervals, for charts and for tables."""

from __future__ import annotations

from math import isfinite

from rag_harness.gates.units import value_said
from rag_harness.page.charts import Estimate
from rag_harness.page.content import Cell
from rag_harness.page.figures import NONE, interval_said, no_value
from rag_harness.report.suite_table import SuiteTable

STUDY = ("context_precision", "faithfulness", "answer_relevancy", "g_mean")
PLAIN = ("recall@5", "evidence_recall", "mrr@10", "token_f1")
QUALITY = ("g_mean", "factuality", "answer_correctness", "token_f1", "recall@5")
"""Measures that stand for the quality of an experiment. The first that a run has is used."""


def estimate(table: SuiteTable, measure: str) -> Estimate | None:
    """Return the mean of a measure with its 95 % interval; no interval for a single case, None without a value."""
    values = table.values(measure, {}) if measure in table.columns else {}
    if not values:
        return None
    mean = sum(values.values()) / len(values)
    if len(values) == 1:
        return Estimate(mean)
    found = table.interval(measure)
    if found is None:
        return Estimate(mean)
    low, high = found
    # The mean of equal values may differ from both ends by rounding.
    ends = min(low, mean) if isfinite(low) else None, max(high, mean) if isfinite(high) else None
    return Estimate(mean, *ends)


def estimate_cell(table: SuiteTable, measure: str) -> Cell:
    """Return the mean with its interval and n."""
    found = estimate(table, measure)
    if found is None:
        return no_value(table, measure)
    unit, n = table.columns[measure].measure.unit, len(table.values(measure, {}))
    return Cell(estimate_in_words(found, unit), hint=f"n = {n}")


def estimate_in_words(found: Estimate | None, unit: str = "share") -> str:
    """Return an estimate as text: value and interval."""
    if found is None:
        return NONE
    if found.low is None and found.high is None:
        return value_said(found.value, unit)
    return f"{value_said(found.value, unit)} {interval_said(found.low, found.high, unit)}"
