"""A run as traces with scores, for dashboards: one for each trial, then one for each experiment with its means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from rag_harness.exports.scored_run import ScoredRun
from rag_harness.files.sources import json_digest
from rag_harness.report.trial_columns import READ_OFF, measure_column
from rag_harness.results.cases import CaseFile
from rag_harness.types import Case

_LABELLED = ("query_type", "status", "cause", "model", "fingerprint")


@dataclass(frozen=True, slots=True)
class Score:
    """A score on a trace.

    Attributes:
        name: a measure, or ``gate 01``.
        value: the number; None for a verdict that has none.
        label: a verdict in a word; empty for a measure.
        comment: the interval and the number of cases, or the gate.
    """

    name: str
    value: float | None
    label: str = ""
    comment: str = ""


@dataclass(frozen=True, slots=True)
class ScoredTrace:
    """A trial or an experiment.

    Attributes:
        trace_id: 32 hexadecimal digits, the same for the same trial of the same run.
        name: the experiment, and for a trial its question's id.
        experiment: the experiment.
        query_id: the question; empty for an experiment.
        session: the experiment with the date of the run.
        asked: the question; empty for an experiment.
        answer: what was answered.
        error: why there is no answer.
        start: when it began; of a trial the start of the run, for rows have no other time.
        end: when it was over.
        scores: its scores.
        labels: short facts about it.
        documents: what was retrieved, best first; None for a further chunk of a document.
        gold: the documents that should be.
    """

    trace_id: str
    name: str
    experiment: str
    query_id: str
    session: str
    asked: str
    answer: str
    error: str
    start: datetime
    end: datetime
    scores: Sequence[Score]
    labels: Mapping[str, str]
    documents: Sequence[str | None] = ()
    gold: frozenset[str] = frozenset()


def scored_traces(run: ScoredRun, output: Path) -> Iterator[ScoredTrace]:
    """Yield the trials of a run, and behind those of all experiments the experiments."""
    cases: dict[str, Mapping[str, Case]] = {}
    for record in run.trials:
        name = record["experiment"]
        if name not in cases:
            cases[name] = _cases(run, output, name)
        yield _trial(run, record, cases[name].get(record["query_id"]))
    yield from (_experiment(run, name) for name in run.trials.experiments)


def _trial(run: ScoredRun, record: Mapping[str, Any], case: Case | None) -> ScoredTrace:
    name, start = record["experiment"], datetime.fromisoformat(run.manifest.date)
    values = {
        measure: record[measure if measure in READ_OFF else measure_column(measure)]
        for measure in run.trials.tables[name].columns
    }
    return ScoredTrace(
        trace_id_of(run, name, record["query_id"]),
        f"{name} {record['query_id']}",
        name,
        record["query_id"],
        _session(run, name),
        record["query"] or "",
        record["answer"] or "",
        record["error"] or ("" if record["status"] == "ok" else record["status"]),
        start,
        start + timedelta(milliseconds=record["total_ms"] or 0),
        [Score(measure, float(value)) for measure, value in values.items() if value is not None],
        {key: str(record[key]) for key in _LABELLED if record[key]},
        record["retrieved"] or (),
        frozenset(doc for doc, grade in case.qrels.items() if grade > 0) if case else frozenset(),
    )


def _experiment(run: ScoredRun, name: str) -> ScoredTrace:
    start = datetime.fromisoformat(run.manifest.date)
    means = [
        Score(f"{each.measure} {each.slice}".strip(), each.value, comment=_interval(each.interval, each.n))
        for each in run.scores
        if each.experiment == name
    ]
    verdicts = [
        Score(f"gate {number:02}", gate.get("value"), str(gate["state"]), str(gate["gate"]))
        for number, gate in enumerate(run.gates_of(name), 1)
    ]
    known = {"commit": run.manifest.commit, "export": run.identity}
    labels = {key: value for key, value in known.items() if value}
    said = _session(run, name)
    return ScoredTrace(
        trace_id_of(run, name, ""),
        f"{name}, all trials",
        name,
        "",
        said,
        "",
        "",
        "",
        start,
        start,
        [*means, *verdicts],
        labels,
    )


def trace_id_of(run: ScoredRun, experiment: str, query_id: str) -> str:
    """Return the id of a trial's trace; of the experiment's where the query has no id."""
    of = [run.manifest.date, experiment, query_id]
    return json_digest(["trace", *of]) + json_digest(["search", *of])


def _session(run: ScoredRun, name: str) -> str:
    return f"{name} {run.manifest.date}"


def _interval(between: tuple[float, float] | None, n: int) -> str:
    said = f"95 % interval {between[0]:.4g} to {between[1]:.4g}, " if between else ""
    return f"{said}n = {n}"


def _cases(run: ScoredRun, output: Path, name: str) -> Mapping[str, Case]:
    with closing(CaseFile(output, run.manifest.suites[name].cases)) as cases:
        kept = (cases[position].case for position in range(len(cases.ids)))
        return {case.query.query_id: case for case in kept}
