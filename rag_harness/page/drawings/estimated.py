"""A table's means with their intervals, for charts and for tables."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from rag_harness.gates.bounds import interval_of_mean
from rag_harness.gates.units import value_said
from rag_harness.page.charts import Estimate
from rag_harness.page.figures import NONE, interval_said
from rag_harness.report.suite_table import SuiteTable

STUDY = ("context_precision", "faithfulness", "answer_relevancy", "g_mean")
PLAIN = ("recall@5", "evidence_recall", "mrr@10", "token_f1")
QUALITY = ("g_mean", "factuality", "answer_correctness", "token_f1", "recall@5")
"""Measures that stand for the quality of an experiment. The first that a run has is used."""


def estimate(table: SuiteTable, measure: str) -> Estimate | None:
    """Return the mean of a measure with its 95 % interval; no interval for a single case, None without a value."""
    values = table.values(measure, {}) if measure in table.columns else {}
    return _estimate(values, table.interval(measure) if len(values) > 1 else None)


def right_declines(table: SuiteTable) -> Mapping[str, float]:
    """Return for each question that the documents do not answer whether the experiment says so: 1 or 0."""
    if not {"abstention_rate", "false_abstention_rate"} <= {*table.columns}:
        return {}
    answerable = table.values("false_abstention_rate", {})
    declined = table.values("abstention_rate", {})
    return {case: value for case, value in declined.items() if case not in answerable}


def right_declines_estimate(table: SuiteTable) -> Estimate | None:
    """Return their share with its 95 % interval."""
    values = right_declines(table)
    alike = table.clusters_of(values)
    return _estimate(values, interval_of_mean([*values.values()], "share", alike) if len(values) > 1 else None)


def _estimate(values: Mapping[str, float], interval: tuple[float, float] | None) -> Estimate | None:
    if not values:
        return None
    return with_interval(sum(values.values()) / len(values), interval)


def with_interval(value: float, interval: tuple[float, float] | None) -> Estimate:
    """Return a value with its interval; an end that is infinite is open."""
    if interval is None:
        return Estimate(value)
    low, high = interval
    # The mean of equal values may differ from both ends by rounding.
    return Estimate(value, min(low, value) if isfinite(low) else None, max(high, value) if isfinite(high) else None)


def estimate_in_words(found: Estimate | None, unit: str = "share") -> str:
    """Return an estimate as text: value and interval."""
    if found is None:
        return NONE
    if found.low is None and found.high is None:
        return value_said(found.value, unit)
    return f"{value_said(found.value, unit)} {interval_said(found.low, found.high, unit)}"
