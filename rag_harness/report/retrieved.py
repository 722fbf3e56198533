"""Reads the golden suite's rows and cases for its lines, its misses and its TREC files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_harness.measures.golden_run import RetrievalCase, RetrievalResult, retrieval_result
from rag_harness.results.cases import CaseFile, KeptCase
from rag_harness.results.manifest import RunManifest, SuiteRecord, of_run
from rag_harness.results.row import ExperimentResult, rows_in
from rag_harness.types import GOLDEN


def read_retrievals(output: Path, manifest: RunManifest) -> Iterator[RetrievalResult]:
    """Yield the retrieval result of each golden entry of the run, in the order of the entries.

    Raises:
        DataError: the cases are missing or damaged.
    """
    record = manifest.suites.get(GOLDEN)
    if record is None:
        return
    cases = CaseFile(output, record.cases)
    k, retriever = int(manifest.settings.get("k") or 10), str(manifest.settings.get("retriever") or "")
    try:
        for row in sorted(_rows(output, record, cases), key=lambda row: cases.position[row.query_id]):
            yield _result(row, cases[cases.position[row.query_id]], retriever, k)
    finally:
        cases.close()


def _rows(output: Path, record: SuiteRecord, cases: CaseFile) -> Iterator[ExperimentResult]:
    is_of_run = of_run(record)
    return (row for row in rows_in(output / record.file) if is_of_run(row) and row.query_id in cases.position)


def _result(row: ExperimentResult, kept: KeptCase, retriever: str, k: int) -> RetrievalResult:
    entry = RetrievalCase(
        row.query_id,
        row.query,
        kept.case.qrels,
        expected=kept.expected,
        justification=kept.justification,
        passage=kept.passage,
        slices=kept.labels,
    )
    return retrieval_result(entry, row, retriever, k)
