"""Which trials of a run failed: read from ``output/``, one row at a time."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from rag_harness.gates import Gate, Reference, parse_gate
from rag_harness.gates.verdict import holds
from rag_harness.report.asked import asked_measures
from rag_harness.report.suite_table import SuiteTable
from rag_harness.report.summary_file import FILE
from rag_harness.report.tables import read_tables
from rag_harness.results.cases import CaseFile
from rag_harness.results.manifest import RunManifest, of_run
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.types import Case

FAILED = ("Hallucination", "Retrieval Failure", "Irrelevant", "Total Failure", "Wrong Abstention")
"""Categories of answers that failed."""
WORST = 10
"""So many an experiment are looked at beside those of these categories."""
AGAINST_TRUTH = ("answer_correctness", "nugget_recall")
"""Judged measures that say how much of the ground truth an answer has."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A trial that may have failed. ``category`` is empty where it is only among the worst.

    Attributes:
        badness: what it is ordered by: its HRI, and below all of these, [-2, -1], how bad the words of others are.
    """

    query_id: str
    badness: float
    category: str = ""
    hri: float | None = None
    judged: Mapping[str, float] = field(default_factory=dict)


def tables_of(output: Path, manifest: RunManifest) -> dict[str, SuiteTable]:
    """Return the tables of a run with what it was judged on.

    Raises:
        DataError: the cases are missing or damaged.
    """

    return read_tables(output, partial(asked_measures, output, manifest))


def suspects(table: SuiteTable, worst: int = WORST, failed: Sequence[Gate] = ()) -> dict[str, Suspect]:
    """Return the trials of one experiment that may have failed, the worst first.

    They are those of a failed category, those on the wrong side of the threshold of a gate that ``failed``, and the
    ``worst`` of all.
    """
    below = {case for gate in failed if gate.measure in table.columns for case in _below(table, gate)}
    ordered = sorted(_answered(table), key=lambda suspect: -suspect.badness)
    return {
        suspect.query_id: suspect
        for n, suspect in enumerate(ordered)
        if suspect.category or suspect.query_id in below or n < worst
    }


def failed_gates(output: Path, experiment: str, k: int) -> list[Gate]:
    """Return the gates on a mean of ``experiment`` that failed in the run, as ``summary.json`` says."""
    try:
        said = json.loads((output / FILE).read_bytes()).get("gates", [])
    except (OSError, ValueError, AttributeError):
        return []
    gates = [parse_gate(verdict["gate"], k) for verdict in said if verdict.get("state") == "failed"]
    return [
        gate
        for gate in gates
        if gate.suite == experiment and gate.quantile is None and not isinstance(gate.right, Reference)
    ]


def _below(table: SuiteTable, gate: Gate) -> Iterator[str]:
    assert not isinstance(gate.right, Reference)
    values = table.values(gate.measure, dict(gate.slice))
    return (case for case, value in values.items() if not holds(value, gate.op, gate.right))


def _answered(table: SuiteTable) -> Iterator[Suspect]:
    values = {name: table.values(name, {}) for name in _looked_at(table)}
    for position, case_id in enumerate(table.ids):
        if table.state_of(position) == "ok":
            yield _suspect(table, position, {name: each[case_id] for name, each in values.items() if case_id in each})


def _looked_at(table: SuiteTable) -> list[str]:
    wanted = ("hri", "hri_gold", *AGAINST_TRUTH, "token_f1", "false_abstention_rate")
    return [name for name in (*wanted, "abstention_rate") if name in table.columns]


def _suspect(table: SuiteTable, position: int, values: Mapping[str, float]) -> Suspect:
    category = table.categories[position] if table.categories else ""
    hri = values.get("hri", values.get("hri_gold"))
    judged = {name: values[name] for name in AGAINST_TRUTH if name in values}
    failed = category if category in FAILED else ""
    # What has no HRI, a refusal say, invents nothing: it comes after all that has one.
    return Suspect(table.ids[position], _badness(values) - 2 if hri is None else hri, failed, hri, judged)


def _badness(values: Mapping[str, float]) -> float:
    """Return how bad an answer is that nobody judged, in [0, 1]: how far its words are from the ground truth's.

    A refusal shares none. Where nothing answers the query, whoever answers is as bad as can be. Whether the evidence
    was given does not count: chosen by that, every failure looked at would be one of retrieval.
    """
    if "false_abstention_rate" not in values:
        return 1 - values.get("abstention_rate", 1.0)
    return max(values["false_abstention_rate"], 1 - values.get("token_f1", 1.0))


def rows_of(
    output: Path, manifest: RunManifest, experiment: str, wanted: Collection[str]
) -> Iterator[tuple[Case, ExperimentResult]]:
    """Yield the rows of this run of an experiment that are ``wanted``, each with its case."""
    record = manifest.suites[experiment]
    is_of_run, cases = of_run(record), CaseFile(output, record.data)
    try:
        for row in rows_in(output / record.file):
            if row.ok and row.query_id in wanted and is_of_run(row):
                yield cases[cases.position[row.query_id]].case, row
    finally:
        cases.close()
