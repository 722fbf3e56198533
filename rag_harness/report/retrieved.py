"""The golden suite's rows and cases -> what its lines, its misses and its TREC files show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_harness.golden.run import RetrievalCase, RetrievalResult, retrieval_result
from rag_harness.results.cases import CaseFile, KeptCase
from rag_harness.results.manifest import RunManifest, SuiteRecord, chosen
from rag_harness.results.row import ExperimentResult, numbered_lines, row_or_none
from rag_harness.types import GOLDEN


def read_retrievals(output: Path, manifest: RunManifest) -> Iterator[RetrievalResult]:
    """Yield what came back for each golden entry of the run, in the order of the entries.

    Raises:
        DataError: the cases are missing or damaged.
    """
    record = manifest.suites.get(GOLDEN)
    if record is None:
        return
    cases = CaseFile(output, record.data)
    k, retriever = manifest.settings["k"], manifest.settings["retriever"]
    try:
        for row in sorted(_rows(output, record, cases), key=lambda row: cases.position[row.query_id]):
            yield _result(row, cases[cases.position[row.query_id]], retriever, k)
    finally:
        cases.close()


def _rows(output: Path, record: SuiteRecord, cases: CaseFile) -> Iterator[ExperimentResult]:
    is_selected, lost = chosen(record.selected), {*record.lost, *record.not_run}
    for _, line, _ in numbered_lines(output / record.file):
        row = row_or_none(line)
        if row is None or row.fingerprint not in record.fingerprints or row.query_id not in cases.position:
            continue
        if is_selected(row.query_id) and row.query_id not in lost:
            yield row


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
