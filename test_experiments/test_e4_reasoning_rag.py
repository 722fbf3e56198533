import pytest

from rag_harness import ExperimentResult

pytestmark = pytest.mark.e4


def test_answers(rag_result: ExperimentResult) -> None:
    assert rag_result.ok, rag_result.why
    assert rag_result.llm_answer.strip()
    assert rag_result.retrieved_chunks
    assert all(chunk.rerank_score is not None for chunk in rag_result.retrieved_chunks)
    assert rag_result.reasoning_steps
