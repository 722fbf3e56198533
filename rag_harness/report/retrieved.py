"""The golden suite's rows and cases -> what its lines, its misses and its TREC files show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rag_harness.golden.run import FoundHit, RetrievalResult
from rag_harness.results.cases import CaseFile, KeptCase
from rag_harness.results.manifest import GOLDEN, RunManifest, SuiteRecord, chosen
from rag_harness.results.row import ExperimentResult, RetrievedChunk, numbered_lines, row_or_none

_SNIPPET = 160


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
    ranked, relevant = row.ranking or (), kept.case.qrels
    return RetrievalResult(
        case_id=row.query_id,
        query=row.query,
        retriever=retriever,
        k=k,
        expected=kept.expected,
        justification=kept.justification,
        passage=kept.passage,
        slices=dict(kept.labels),
        relevant=dict(relevant),
        ranked=ranked,
        top=tuple(_hit(rank, chunk) for rank, chunk in enumerate(row.retrieved_chunks, 1)),
        rank=next((rank for rank, name in enumerate(ranked, 1) if relevant.get(name, 0) > 0), None),
        time_ms=row.retrieval_time_ms or 0.0,
        error=f"{row.error.type}: {row.error.message}" if row.error else "",
    )


def _hit(rank: int, chunk: RetrievedChunk) -> FoundHit:
    return FoundHit(
        rank=rank,
        chunk_id=chunk.chunk_id,
        document=chunk.metadata.filename,
        section=chunk.metadata.section,
        score=chunk.score if chunk.rerank_score is None else chunk.rerank_score,
        snippet=" ".join(chunk.text.split())[:_SNIPPET],
    )
