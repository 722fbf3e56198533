import pytest

from rag_harness import ExperimentResult

pytestmark = pytest.mark.e2


def test_answers(rag_result: ExperimentResult) -> None:
    assert rag_result.ok, rag_result.why
    assert rag_result.llm_answer.strip()
    assert rag_result.retrieved_chunks
