import pytest

from rag_harness import ExperimentResult

pytestmark = pytest.mark.e1


def test_answers(rag_result: ExperimentResult) -> None:
    assert rag_result.ok, rag_result.why
    assert rag_result.llm_answer.strip()
    assert not rag_result.retrieved_chunks
