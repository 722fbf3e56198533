"""The teaching assistant over a textbook, and its alternatives: ``pytest -m "t1 or t2 or t3 or t4 or t5"``."""

import pytest

from rag_harness import ExperimentResult


def answered(row: ExperimentResult) -> None:
    """Make sure that a question has an answer, or was declined for a reason."""
    assert row.ok, row.why
    assert row.llm_answer.strip()
    assert {"floor chosen", "confidence", "answer"} <= {decision.name for decision in row.decisions}


@pytest.mark.t1
def test_headings(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t1
@pytest.mark.rag_experiment("t1-nopassage")
def test_without_passage(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t1
@pytest.mark.rag_experiment("t1-both")
def test_question_and_selection_searched(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.adaptive
@pytest.mark.rag_experiment("t1-adaptive")
def test_adaptive_top_k(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t1
@pytest.mark.rag_experiment("t1-boost0")
def test_without_boost(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t1
@pytest.mark.rag_experiment("t1-boost12")
def test_boost_of_1_2(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t1
@pytest.mark.rag_experiment("t1-boost15")
def test_boost_of_1_5(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t1
@pytest.mark.rag_experiment("t1-floor07")
def test_floor_of_the_record(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t2
def test_fixed(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t3
def test_hybrid(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t3
@pytest.mark.rag_experiment("t3-rrf")
def test_hybrid_by_ranks(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t4
def test_sliding(rag_result: ExperimentResult) -> None:
    answered(rag_result)


@pytest.mark.t5
def test_summaries(rag_result: ExperimentResult) -> None:
    answered(rag_result)
