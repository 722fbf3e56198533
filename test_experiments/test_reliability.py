"""The reliability engine and its ablations: ``pytest -m "r1 or r2 or r3 or r4 or r5 or r6"``."""

import pytest

from rag_harness import ExperimentResult


def decided(row: ExperimentResult) -> None:
    """Make sure that a question has an answer, or was declined for a reason, and that the row says why."""
    assert row.ok, row.why
    assert row.llm_answer.strip()
    assert {"intent", "signal: relevance", "retrieval quality", "confidence", "decision"} <= {
        decision.name for decision in row.decisions
    }
    assert row.confidence is not None


@pytest.mark.r1
def test_reliable(rag_result: ExperimentResult) -> None:
    decided(rag_result)


@pytest.mark.r1
@pytest.mark.rag_experiment("r1-original")
def test_original_rating(rag_result: ExperimentResult) -> None:
    decided(rag_result)


@pytest.mark.r2
def test_no_gate(rag_result: ExperimentResult) -> None:
    decided(rag_result)


@pytest.mark.r3
def test_no_verification(rag_result: ExperimentResult) -> None:
    decided(rag_result)


@pytest.mark.r4
def test_no_decomposition(rag_result: ExperimentResult) -> None:
    decided(rag_result)


@pytest.mark.r5
def test_dense_only(rag_result: ExperimentResult) -> None:
    decided(rag_result)


@pytest.mark.r6
def test_strict(rag_result: ExperimentResult) -> None:
    decided(rag_result)
