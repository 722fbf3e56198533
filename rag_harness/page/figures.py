"""Formats of numbers and names in all sections of the report."""

from __future__ import annotations

from math import inf, isfinite

from rag_harness.gates.units import bounds, value_said
from rag_harness.measures import Measure
from rag_harness.page.content import Cell
from rag_harness.report.direction import better_of
from rag_harness.report.suite_table import SliceLabels, SuiteTable
from rag_harness.report.summary import SHORT_MEASURE_NAMES
from rag_harness.stats import quantile
from rag_harness.stats.clustered_quantiles import quantile_interval_of

NONE = "–"
"""Text for a missing value."""
_LOPSIDED = 0.1


def interval_said(low: float | None, high: float | None, unit: str = "share", signed: bool = False) -> str:
    """Return an interval as text; an end that is None is open."""
    return bounds(-inf if low is None else low, inf if high is None else high, unit, signed, digits=3)


def measure_title(measure: Measure) -> str:
    """Return a measure's name, the study's short one where there is one, and whether higher or lower is better."""
    return name_said(measure.name) + {"lower": " ↓", "higher": " ↑", "": ""}[better_of(measure)]


def name_said(name: str) -> str:
    """Return a measure's name with the study's short one."""
    short = SHORT_MEASURE_NAMES.get(name, name)
    return name if short == name or short.lower() == name else f"{name} ({short})"


def mean_cell(table: SuiteTable, measure: str, is_best: bool = False, where: SliceLabels | None = None) -> Cell:
    """Return mean ± half the width of its 95 % interval; only the mean for one case; or that there is no value."""
    cases = table.values(measure, where or {}) if measure in table.columns else {}
    values = list(cases.values())
    if not values:
        return no_value(table, measure)
    counted = f"n = {len(values)}{table.describe_clusters(cases)}"
    mean, unit = table.aggregate([measure], where)[measure] or 0.0, table.columns[measure].measure.unit
    if len(values) == 1:
        return Cell(f"{value_said(mean, unit)} (1 case)", hint="one case has no interval")
    found = table.interval(measure, where)
    if found is None:
        return Cell(value_said(mean, unit), is_best=is_best, hint=f"{counted}; all are equal")
    low, high = found
    between, half = interval_said(low, high, unit), (high - low) / 2
    # ± means a symmetric interval. Near the end of a range intervals are not symmetric.
    is_even = isfinite(half) and abs((low + high) / 2 - mean) <= _LOPSIDED * half
    text = f"{value_said(mean, unit)} {f'±{value_said(half, unit)}' if is_even else between}"
    return Cell(text, is_best=is_best, hint=f"{counted}; 95 % interval {between}")


def tail_cell(table: SuiteTable, measure: str, share: float) -> Cell:
    """Return a quantile with its 95 % interval. An end is open where there are too few cases."""
    found = table.values(measure, {}) if measure in table.columns else {}
    if not found:
        return no_value(table, measure)
    values, unit = [*found.values()], table.columns[measure].measure.unit
    said, counted = (
        value_said(quantile(sorted(values), share), unit),
        f"n = {len(values)}{table.describe_clusters(found)}",
    )
    between = quantile_interval_of(values, share, table.clusters_of(found))
    if between is None:
        return Cell(said, hint=f"{counted}, so it has no interval")
    return Cell(f"{said} {interval_said(between.low, between.high, unit)}", hint=f"{counted}; 95 % interval")


def no_value(table: SuiteTable, measure: str) -> Cell:
    """Return a cell that says why there is no value."""
    return Cell(NONE, "mute", hint=why_none(table, measure))


def why_none(table: SuiteTable, measure: str) -> str:
    """Return why no case has a value."""
    if measure not in table.columns:
        return "not measured"
    return ", ".join(
        f"{n} of {table.selected_of({})} have {why}" for why, n in table.absent(measure, {}).most_common(2)
    )
