"""What confidence is worth, of rows that state one."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.tables.abstention import Abstention, abstention_lines, abstentions
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import tables_of


def answered(number: int, confidence: float | None, right: bool, **changes: Any) -> ExperimentResult:
    answer = "30 days" if right else "a fortnight"
    return make_row(query_id=f"q{number:03}", confidence=confidence, llm_answer=answer, citations=[], **changes)


def only(rows: list[ExperimentResult]) -> Abstention:
    (found,) = abstentions(tables_of(rows))
    return found


def rows(n: int, wrong: float = 0.4) -> list[ExperimentResult]:
    """Return answers of which the less confident are wrong more often."""
    rng = np.random.default_rng(0)
    sure = rng.random(n)
    return [answered(k, float(sure[k]), bool(rng.random() > 2 * wrong * (1 - sure[k]))) for k in range(n)]


def test_the_curve_and_the_auroc_are_of_the_answers() -> None:
    found = only([answered(1, 0.9, True), answered(2, 0.6, True), answered(3, 0.1, False)])
    assert (found.auroc, found.left_out, found.by_judge) == (1.0, 0, {})
    assert found.curve.by_chance == pytest.approx(1 / 3)
    assert found.curve.aurc == found.curve.best


def test_declining_is_no_answer_and_answering_the_unanswerable_is_wrong() -> None:
    negative = answered(3, 0.8, True, answerable=False, query_type="negative")
    found = only([answered(1, 0.9, True), answered(2, 0.1, False, abstained=True), negative, failed_row(query_id="q4")])
    assert found.curve.risk.tolist() == [0.0, 0.5]


def test_an_answer_that_has_the_truth_in_many_words_is_right() -> None:
    """``token_f1`` of the first is below 0.5, and of the second above it."""
    truth = "You have 30 days after delivery to return it"
    full = "Yes, you do, and since you ask: whoever buys a lamp here " + truth
    other = make_row(query_id="q2", confidence=0.1, llm_answer=truth.replace("30", "31"), ground_truth=truth)
    right = make_row(query_id="q1", confidence=0.9, llm_answer=full, ground_truth=truth)
    assert only([right, other]).stated == ((0.9, 0.0), (0.1, 1.0))


def test_answers_that_nothing_can_check_are_left_out_and_counted() -> None:
    found = only([answered(1, 0.9, True), answered(2, 0.1, False), answered(3, 0.5, True, ground_truth=" ")])
    assert (len(found.curve.risk), found.left_out) == (2, 1)


def test_a_judge_decides_where_the_answer_alone_does_not_tell() -> None:
    told, untold = answered(1, 0.9, True), [answered(n, 0.1 * n, True, ground_truth=" ") for n in (2, 3)]
    scores = [
        ScoreLine("factuality", 1, "e3", row.query_id, row_digest(row), "", Author("j", "m", "1"), value)
        for row, value in zip([told, *untold], (0.0, 0.4, 0.5), strict=True)
    ]
    (found,) = abstentions(tables_of([told, *untold], measures=["factuality"], scores=scores))
    assert [*map(pytest.approx, found.stated)] == [(0.9, 0.0), (0.2, 1.0), (0.3, 0.0)]
    assert next(found.lines()) == "e3: 3 answers with a confidence; 67% right, 2 of them checked by factuality"


def test_without_a_confidence_there_is_no_section() -> None:
    assert abstentions(tables_of([answered(1, None, True)])) == []
    assert abstentions({}) == []
    assert abstention_lines([]) == []


@pytest.mark.parametrize(("right", "why"), [(True, "all answers are right"), (False, "all answers are wrong")])
def test_one_kind_of_answer_has_no_auroc_and_says_so(right: bool, why: str) -> None:
    found = only([answered(k, 1.0, right) for k in range(4)])
    assert found.auroc is None
    assert f"no AUROC: {why}" in found.reasons


def test_one_answer_has_no_threshold() -> None:
    found = only([answered(1, 0.0, True)])
    assert found.promise is None
    assert any(reason.startswith("no threshold: one answer only") for reason in found.reasons)


def test_too_few_answers_are_told_how_many_are_missing() -> None:
    text = " ".join(abstention_lines(abstentions(tables_of([answered(k, 1.0, True) for k in range(60)]))))
    assert "29 more without an error are needed in this half, 59 in all" in " ".join(text.split())


def test_enough_answers_are_promised_something() -> None:
    lines = abstention_lines(abstentions(tables_of(rows(400, wrong=0.03))))
    assert max(map(len, lines)) <= 100
    assert any("at most 5% are wrong, at 95%" in line for line in lines)


def test_json_has_no_nan() -> None:
    for made in ([answered(1, 0.5, True)], rows(60)):
        kept = json.loads(json.dumps(only(made).as_json(), allow_nan=False))
        assert kept["by_judge"] == {}
        assert kept["risk_at"]["1.00"] == kept["risk"]
