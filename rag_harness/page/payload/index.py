"""All trials of all runs -> the JSON that the page's script reads."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import isnan
from typing import Any

from rag_harness.measures import Measure
from rag_harness.measures.judged.measure import JudgedMeasure
from rag_harness.measures.judged.opinion import Support
from rag_harness.page.payload.details import Chunk, Details
from rag_harness.page.payload.pool import Pool
from rag_harness.page.payload.prompts import Prompts
from rag_harness.page.payload.rows import rows_of
from rag_harness.page.run import Run
from rag_harness.report.suite_table import SuiteTable
from rag_harness.results.cases import CaseFile
from rag_harness.results.causes import CauseLine
from rag_harness.types import Case

BLOCK = 250
"""Trials whose details are unpacked together."""
_STATES = ("ok", "error", "lost", "left out")


@dataclass
class Payload:
    """What the script reads: name of the block -> JSON value. ``blocks`` are made one by one."""

    index: dict[str, Any] = field(default_factory=dict)
    texts: dict[str, Any] = field(default_factory=dict)
    trials: list[list[dict[str, Any]]] = field(default_factory=list)

    def blocks(self) -> Iterator[tuple[str, Any]]:
        """Yield the blocks in the order in which the script wants them."""
        yield "index", self.index
        yield "texts", self.texts
        for number, block in enumerate(self.trials):
            yield f"trials-{number}", block


def payload_of(runs: Sequence[Run]) -> Payload:
    """Return all trials of ``runs``; those of one run stand together, experiment by experiment."""
    with _no_search_for_garbage():
        return _Gathering(runs).payload()


@contextmanager
def _no_search_for_garbage() -> Iterator[None]:
    """Keep the collector out: all that is gathered is kept, and to look through it again and again takes a third."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class _Gathering:
    """The payload as it grows."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._chunks: Pool[Chunk] = Pool()
        self._strings: Pool[str] = Pool()
        self._names: Pool[str] = Pool()
        self._kinds: Pool[str] = Pool()
        self._causes: Pool[str] = Pool()
        self._cases: dict[tuple[str, str], int] = {}
        self._said_of_cases: list[dict[str, Any]] = []
        self._columns: dict[str, list[Any]] = {name: [] for name in _COLUMNS}
        self._measures = {m.name: m for run in runs for table in run.experiments.values() for m in _measures(table)}
        self._values: dict[str, list[float | None]] = {name: [] for name in self._measures}
        self._details: list[dict[str, Any]] = []

    def payload(self) -> Payload:
        """Return it, whole."""
        suites = [(run, name) for run in self._runs for name in run.experiments]
        for number, (run, name) in enumerate(suites):
            self._add(number, run, name)
        index = {
            "version": 1,
            "block": BLOCK,
            "runs": [{"name": run.name, "date": run.manifest.date} for run in self._runs],
            "experiments": [{"id": name, "run": self._runs.index(run)} for run, name in suites],
            "measures": [_said(measure) for measure in self._measures.values()],
            "cases": self._said_of_cases,
            "categories": self._kinds.values,
            "causes": self._causes.values,
            "states": _STATES,
            "trials": {**self._columns, "values": self._values},
        }
        chunks = self._chunks.values
        texts = {
            "chunks": [list(chunk) for chunk in chunks],
            "strings": self._strings.values,
            "names": self._names.values,
        }
        blocks = [self._details[start : start + BLOCK] for start in range(0, len(self._details), BLOCK)]
        return Payload(index, texts, blocks)

    def _add(self, number: int, run: Run, name: str) -> None:
        table = run.tables[name]
        details = Details(self._chunks, self._names, Prompts(run.output, self._strings))
        cases = CaseFile(run.output, run.suites[name].data)
        found: dict[int, dict[str, Any]] = {}
        columns: dict[int, dict[str, Any]] = {}
        causes = {trial.query_id: line for trial, line in run.causes.items() if trial.experiment == name}
        try:
            for position, row, judged in rows_of(run, name):
                cause = causes.get(row.query_id)
                quotes = [quote.quote for quote in cases[position].case.evidence]
                found[position] = details.of(row, judged, quotes, cause, _gaps(table, position))
                columns[position] = {
                    "answer": row.llm_answer,
                    "abstained": int(row.abstained),
                    "ms": round(row.total_time_ms, 1),
                    "cost": row.cost_usd,
                    "confidence": row.confidence,
                }
            for position in range(len(table.ids)):
                if table.state_of(position) != "left out":
                    case = self._case(run, name, cases, position)
                    self._put(number, table, position, case, columns.get(position, {}), causes)
                    self._details.append(found.pop(position, {}))
        finally:
            cases.close()

    def _put(
        self,
        number: int,
        table: SuiteTable,
        position: int,
        case: int,
        row: Mapping[str, Any],
        causes: Mapping[str, CauseLine],
    ) -> None:
        kind = table.categories[position] if table.categories else ""
        cause = causes.get(table.ids[position])
        said = {
            "experiment": number,
            "case": case,
            "state": _STATES.index(table.state_of(position)),
            "category": self._kinds.number(kind) if kind else -1,
            "cause": self._causes.number(cause.cause) if cause else -1,
            "answer": "",
            "abstained": 0,
            "ms": None,
            "cost": None,
            "confidence": None,
            **row,
        }
        for column in _COLUMNS:
            self._columns[column].append(said[column])
        for measure, values in self._values.items():
            values.append(_value(table, measure, position))

    def _case(self, run: Run, name: str, cases: CaseFile, position: int) -> int:
        """Return the number of a case; runs over the same data share it."""
        data = run.suites[name].data
        key = f"{data} {run.manifest.digests.get(data, run.name)}", cases.ids[position]
        if key not in self._cases:
            self._cases[key] = len(self._said_of_cases)
            kept = cases[position]
            self._said_of_cases.append(_case(kept.case, kept.labels))
        return self._cases[key]


_COLUMNS = ("experiment", "case", "state", "category", "cause", "answer", "abstained", "ms", "cost", "confidence")


def _measures(table: SuiteTable) -> list[Measure]:
    """Return the measures that a trial of the table has a value of."""
    return [column.measure for name, column in table.columns.items() if table.values(name, {})]


def _said(measure: Measure) -> dict[str, Any]:
    """Return what the script says of a measure; ``claims``: whose they are, and what may support them."""
    said: dict[str, Any] = {"name": measure.name, "better": measure.better, "unit": measure.unit}
    asked = [ask for ask in measure.asks if isinstance(ask, Support)] if isinstance(measure, JudgedMeasure) else []
    return said | ({"claims": list(asked[0])} if asked else {})


def _value(table: SuiteTable, measure: str, position: int) -> float | None:
    if measure not in table.columns:
        return None
    value = float(table.columns[measure].values[position])
    return None if isnan(value) else float(f"{value:.4g}")


def _gaps(table: SuiteTable, position: int) -> dict[str, str]:
    """Return why the case has no value, by measure, where it could have one."""
    return {
        name: column.reasons[number]
        for name, column in table.columns.items()
        if (number := int(column.absent[position])) and number in column.unmeasured
    }


def _case(case: Case, labels: Mapping[str, str]) -> dict[str, Any]:
    return {
        "id": case.query.query_id,
        "query": case.query.text,
        "type": case.query_type,
        "answerable": int(case.answerable),
        "truth": case.ground_truth,
        "gold": list(case.context_reference),
        "evidence": [[quote.filename, quote.quote] for quote in case.evidence],
        "labels": {name: value for name, value in labels.items() if name != "query_type"},
    }
