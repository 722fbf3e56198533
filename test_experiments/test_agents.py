"""An agent over questions that need two pages or three, and the same agent with one search: ``pytest -m a1``."""

import pytest

from rag_harness import ExperimentResult


def answered(row: ExperimentResult) -> list[str]:
    """Make sure that a question has an answer, or was declined, and return the kinds of its steps."""
    assert row.ok, row.why
    assert row.llm_answer.strip()
    assert row.retrieved_chunks
    return [step.does for step in row.stages]


@pytest.mark.a1
def test_agent(rag_result: ExperimentResult) -> None:
    kinds = answered(rag_result)
    assert 1 <= kinds.count("retrieve") <= 3
    assert kinds.count("decide") >= kinds.count("retrieve") - 1  # it looks before it searches again


@pytest.mark.a1
@pytest.mark.rag_experiment("a1-once")
def test_one_search(rag_result: ExperimentResult) -> None:
    assert answered(rag_result).count("retrieve") == 1
