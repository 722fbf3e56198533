"""Writes ``summary.json``: every aggregate of the last run, for machines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any

from rag_harness.files.atomic import write_atomically
from rag_harness.gates import Verdict
from rag_harness.measures.composite import CompositeMeasure
from rag_harness.measures.judged import JudgedMeasure
from rag_harness.report.by_turn import by_turn, drift_of, has_turns
from rag_harness.report.speed import stage_quantiles
from rag_harness.report.suite_table import SuiteTable
from rag_harness.stats import quantile
from rag_harness.types import GOLDEN

SUMMARY_FILE = "summary.json"


def write_summary_file(
    output: Path,
    tables: Mapping[str, SuiteTable],
    verdicts: Sequence[Verdict],
    settings: Mapping[str, Any],
    more: Mapping[str, Any] | None = None,
) -> None:
    """Write the aggregates by experiment and for ``golden``, the verdict of each gate, and ``more`` by its keys."""
    suites = {name: _aggregates(name, table) for name, table in tables.items() if table.selected_of({})}
    gates = [verdict_json(verdict) for verdict in verdicts]
    content = {**suites, "gates": gates, "profile": settings["profile"], "mode": settings["mode"], **(more or {})}
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(output / SUMMARY_FILE, (text + "\n").encode())


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as the file has it."""
    evidence = {"confidence": verdict.gate.confidence / 100} if verdict.gate.confidence is not None else {}
    return {
        "gate": verdict.gate.condition,
        "state": verdict.state,
        "value": verdict.value,
        "threshold": verdict.threshold,
        "interval": _ends(verdict.interval),
        "n": verdict.n,
        "unit": verdict.unit,
        "reason": verdict.reason,
        **({"counts": verdict.gate.counts} if verdict.gate.turns else {}),
        **({"alike": verdict.alike} if verdict.alike else {}),
        **({"of": verdict.of, "declined": verdict.declined} if verdict.of else {}),
        **({"unreviewed": verdict.unreviewed} if verdict.unreviewed else {}),
        **({"family": verdict.family} if verdict.family else {}),
        **({"expected": verdict.gate.expected} if verdict.gate.expected else {}),
        **({**evidence, "bounds": _ends(verdict.bounds)} if evidence else {}),
        **({"otherwise": verdict.gate.otherwise, "due": verdict.is_due} if verdict.gate.otherwise else {}),
    }


def _ends(interval: tuple[float, float] | None) -> list[float | None] | None:
    """Return the ends; null for an open end."""
    return [end if isfinite(end) else None for end in interval] if interval else None


def _aggregates(name: str, table: SuiteTable) -> dict[str, Any]:
    measures = list(table.columns)
    by_type = {
        key: {"n": table.selected_of({"query_type": key}), **_measured(values)}
        for key, values in table.by("query_type", measures).items()
    }
    return {
        "n": table.selected_of({}),
        "total": table.total_of({}),
        "lost": table.lost_of({}),
        **_measured(table.aggregate(measures)),
        "by_query_type": by_type,
        **_judged(table),
        **_turns(table),
        **_times_and_cost(name, table),
    }


def _judged(table: SuiteTable) -> dict[str, Any]:
    """Return the entries of judged suites: intervals, upper quantiles of the risks, categories, and missing scores."""
    names = [
        name for name, column in table.columns.items() if isinstance(column.measure, (JudgedMeasure, CompositeMeasure))
    ]
    values = {name: found for name in names if (found := list(table.values(name, {}).values()))}
    if not names:
        return {}
    return {
        "intervals": {name: [*between] for name in values if (between := table.interval(name))},
        "p95": {name: quantile(sorted(found), 0.95) for name, found in values.items() if name.startswith("hri")},
        "categories": table.shares(),
        "unmeasured": {name: table.unmeasured(name, {}) for name in names},
    }


def _turns(table: SuiteTable) -> dict[str, Any]:
    """Return the entries of suites with conversations: each measure by turn, and its drift."""
    if not has_turns(table):
        return {}
    names = [name for name in table.columns if table.has(name)]
    drifts = {name: drift for name in names if (drift := drift_of(table, name))}
    return {
        "by_turn": {name: {each.turn: each.as_json() for each in by_turn(table, name)} for name in names},
        "drift": {name: drift.as_json() for name, drift in drifts.items()},
    }


def _measured(values: Mapping[str, float | None]) -> dict[str, float]:
    return {measure: value for measure, value in values.items() if value is not None}


def _times_and_cost(name: str, table: SuiteTable) -> dict[str, Any]:
    """Return the entries of experiments only; ``cost_usd`` is the sum over all answers."""
    if name == GOLDEN or not table.totals.rows:
        return {}
    return {"stages_ms": stage_quantiles(table), "cost_usd": table.totals.cost_usd}
