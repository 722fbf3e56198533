"""Turns of conversations, searched in three ways: ``pytest -m c1``."""

import pytest

from rag_harness import ExperimentResult


def answered(row: ExperimentResult) -> None:
    """Make sure that a turn has an answer, or was declined, and that the row says what was searched for."""
    assert row.ok, row.why
    assert row.llm_answer.strip()
    assert row.retrieved_chunks
    assert "rewrite" in {decision.name for decision in row.decisions}


@pytest.mark.c1
def test_standalone(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.c1
@pytest.mark.rag_experiment("c1-lastturn")
def test_last_turn_alone(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.c1
@pytest.mark.rag_experiment("c1-full")
def test_all_turns(rag_result: ExperimentResult) -> None:
    answered(rag_result)
