"""Questions about the retail study, each an experiment beside the one that it differs from."""

import pytest

from rag_harness import ExperimentResult


@pytest.mark.plain
@pytest.mark.rag_experiment("e3-plain")
def test_answers_without_markup(rag_result: ExperimentResult) -> None:
    assert rag_result.ok, rag_result.why
    assert {chunk.metadata.markup for chunk in rag_result.retrieved_chunks} == {"taken off"}
    assert all(chunk.rerank_score is not None for chunk in rag_result.retrieved_chunks)


@pytest.mark.plan
@pytest.mark.rag_experiment("e4-plan")
def test_answers_after_planning(rag_result: ExperimentResult) -> None:
    assert rag_result.ok, rag_result.why
    assert "plan" in {decision.name for decision in rag_result.decisions}
    assert rag_result.reasoning_steps


@pytest.mark.tuned
@pytest.mark.rag_experiment("e3-tuned")
def test_answers_as_tuned(rag_result: ExperimentResult) -> None:
    assert rag_result.ok, rag_result.why
    assert len(rag_result.retrieved_chunks) == 5
