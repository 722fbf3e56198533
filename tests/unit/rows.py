"""A row with every field filled in, for the tests of what reads and writes rows."""

from __future__ import annotations

from typing import Any

from rag_harness.records.row import ExperimentResult


def make_row(**changes: Any) -> ExperimentResult:
    """Return a row of e3, with ``changes``."""
    filled: dict[str, Any] = {
        "query_id": "q1",
        "experiment": "e3",
        "query": "How long may I return a lamp?",
        "query_type": "direct",
        "retrieved_chunks": [make_chunk("returns.md#chunk_0")],
        "candidates": [{"chunk_id": "returns.md#chunk_0", "score": 0.5, "rerank_score": 0.9}],
        "llm_answer": "30 days [Source 1].",
        "raw_output": '{"answer": "30 days [Source 1]."}',
        "citations": [1],
        "invalid_citations": [],
        "abstained": False,
        "reasoning_steps": None,
        "ground_truth": "30 days",
        "context_reference": ["returns.md"],
        "metadata": {"topic": "returns"},
        "retrieval_time_ms": 2.0,
        "rerank_time_ms": 1.0,
        "llm_time_ms": 5.0,
        "ttft_ms": None,
        "total_time_ms": 8.0,
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "calls": 1},
        "model": "embedded/extractive",
        "profile": "embedded",
        "mode": "auto",
        "dry_run": False,
        "status": "ok",
        "error": None,
        "fingerprint": "aaaa",
    }
    return ExperimentResult(**(filled | changes))


def make_chunk(chunk_id: str, **changes: Any) -> dict[str, Any]:
    """Return a chunk of a row."""
    where = {"filename": chunk_id.partition("#")[0], "section": "Returns > Windows"}
    return {"chunk_id": chunk_id, "text": "30 days.", "score": 0.5, "rerank_score": 0.9, "metadata": where, **changes}


def failed_row(**changes: Any) -> ExperimentResult:
    """Return a row of a trial that failed before it retrieved anything."""
    error = {"stage": "generate", "type": "ModelCallError", "message": "503"}
    nothing: dict[str, Any] = {"retrieved_chunks": [], "candidates": [], "citations": [], "llm_answer": ""}
    return make_row(**nothing, **{"status": "error", "error": error, **changes})
