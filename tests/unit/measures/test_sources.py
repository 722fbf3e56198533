"""Whether anything reached the prompt, and whether the answer cites it, on rows whose value is known by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.evaluation.measures import RowMeasure, Score, measure_named
from rag_harness.records.row import ExperimentResult
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.tables import case_of, golden_row, table_of

ZERO, CITED = "zero_result_rate", "citation_rate"
CHUNKS = [make_chunk(f"page{n}.md#0") for n in range(2)]
NOTHING: dict[str, Any] = {"retrieved_chunks": [], "citations": []}


def row(number: int, **changes: Any) -> ExperimentResult:
    return make_row(query_id=f"q{number}", **{"retrieved_chunks": CHUNKS, "citations": [1], **changes})


def table(*rows: ExperimentResult, **more: Any) -> SuiteTable:
    return table_of(rows, measures=(ZERO, CITED), **more)


def score(name: str, of: ExperimentResult) -> Score:
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    return measure.score(case_of(of), of)


@pytest.mark.parametrize(
    ("changes", "zero", "cited"),
    [
        ({}, 0, 1),
        ({"citations": [2, 9]}, 0, 1),
        ({"citations": []}, 0, 0),
        ({"citations": [0, 3]}, 0, 0),
        ({"citations": [], "invalid_citations": [7]}, 0, 0),
        (NOTHING, 1, 0),
        ({**NOTHING, "citations": [1]}, 1, 0),
        ({**NOTHING, "candidates": [{"chunk_id": "page1.md#0", "score": 0.1}]}, 1, 0),
    ],
)
def test_what_reached_the_prompt_and_is_cited(changes: dict[str, Any], zero: float, cited: float) -> None:
    found = row(1, **changes)
    assert (score(ZERO, found).value, score(CITED, found).value) == (zero, cited)


def test_an_abstention_has_nothing_to_cite_but_may_have_had_nothing() -> None:
    declined = row(1, **NOTHING, abstained=True, llm_answer="I couldn't find relevant content.")
    assert score(ZERO, declined).value == 1
    assert score(CITED, declined) == Score(None, "an abstention, which claims nothing", undefined=True)


def test_a_question_that_the_documents_do_not_answer_should_find_nothing_and_its_answer_should_cite() -> None:
    negative: dict[str, Any] = {"query_type": "negative", "answerable": False}
    found = table(row(1, **negative, **NOTHING), row(2, **negative), row(3))
    assert found.values(ZERO, {}) == {"q3": 0.0}
    assert found.absent(ZERO, {}) == {"no answer in the documents": 2}
    assert found.values(CITED, {}) == {"q1": 0.0, "q2": 1.0, "q3": 1.0}


def test_an_error_and_a_lost_trial_count_the_worst() -> None:
    found = table(row(1), failed_row(query_id="q2"), row(3, abstained=True), row(4, citations=[]))
    assert found.values(ZERO, {}) == {"q1": 0.0, "q2": 1.0, "q3": 0.0, "q4": 0.0}
    assert found.values(CITED, {}) == {"q1": 1.0, "q2": 0.0, "q4": 0.0}
    assert found.absent(CITED, {}) == {"an abstention, which claims nothing": 1}
    assert found.unmeasured(CITED, {}) == 0, "there was nothing to measure"
    lost = table(row(1), cases=[case_of(row(1)), case_of(row(2))])
    assert (lost.values(ZERO, {}), lost.values(CITED, {})) == ({"q1": 0.0, "q2": 1.0}, {"q1": 1.0, "q2": 0.0})


def test_where_nothing_is_retrieved_or_answered_at_all_there_is_no_rate() -> None:
    bare = {**NOTHING, "candidates": [], "retrieval_time_ms": None}
    without = table(row(1, **bare))
    assert [without.absent(name, {}) for name in (ZERO, CITED)] == [{"no retrieval": 1}] * 2
    golden = table(golden_row("g1", ["a"]))
    assert [golden.absent(name, {}) for name in (ZERO, CITED)] == [{"no answer": 1}] * 2


def test_a_floor_that_lets_nothing_through_is_a_rate_of_1() -> None:
    assert table(row(1, **NOTHING, candidates=[]), row(2, **NOTHING, candidates=[])).aggregate([ZERO]) == {ZERO: 1.0}
