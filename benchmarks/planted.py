"""Shared code of the programs that plant faults: it answers trials, writes them as a run, and explains the run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from rag_harness.core.files import now
from rag_harness.core.protocols import Experiment
from rag_harness.core.types import Case
from rag_harness.data.datasets import Data
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.reruns import RerunSupport, running
from rag_harness.pipelines.experiments import result_path
from rag_harness.pipelines.parts import RunParts
from rag_harness.records.cases import stored_case, write_cases
from rag_harness.records.files import PromptFiles, ResultFile
from rag_harness.records.manifest import QUERIES, RunManifest, SuiteRecord, write_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import CauseLine
from rag_harness.runs.trial import Trial, run_trial


class Asked(Protocol):
    """What is asked of whom: the cases as they are now, their data, and the parts of a run."""

    parts: RunParts
    data: Data
    cases: list[Case]


async def answered(suite: Asked, experiment: Experiment, output: Path) -> dict[str, ExperimentResult]:
    """Return the row of each case, by its id; what was sent to the model is kept in ``output``."""
    keep = PromptFiles(output).keep
    rows: dict[str, ExperimentResult] = {}
    for case in suite.cases:
        outcome = await run_trial(
            Trial("x1", case), experiment.pipeline, suite.parts.settings, "f", keep, experiment.find_page
        )
        assert outcome.row is not None
        assert outcome.row.ok, outcome.row.why
        rows[case.query.query_id] = outcome.row
    return rows


def explained(suite: Asked, experiment: Experiment, rows: Sequence[ExperimentResult], output: Path) -> list[CauseLine]:
    """Write rows as those of a run, and explain it as ``rag-harness explain`` does: nobody says what was planted."""
    file = ResultFile(result_path(output, "x1"))
    for row in rows:
        file.append(row)
    file.close()
    write_cases(output, QUERIES, map(stored_case, suite.cases))
    record = SuiteRecord(data=QUERIES, file="x1.jsonl", fingerprints=["f"], total=len(rows), selected="all")
    write_manifest(output, RunManifest(date=now(), settings={}, suites={"x1": record}))
    bench = RerunSupport(lambda _: experiment, lambda _: "f", lambda _: suite.data)
    with running(output, suite.parts) as runs:
        return Explainer(output, bench, runs, worst=len(rows)).every()


def with_gold(row: ExperimentResult, case: Case) -> ExperimentResult:
    """Return a row as it would be of a case with other gold."""
    said = {"ground_truth": case.ground_truth, "context_reference": case.context_reference}
    return row.model_copy(update=said)
