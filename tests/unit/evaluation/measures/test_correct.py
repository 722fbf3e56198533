"""Is an answer right, and what decided that?"""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.core.types import Case, Query
from rag_harness.evaluation.measures.correctness import (
    Correct,
    Correctness,
    by_judge,
    correctness,
    describe_disagreement,
)
from rag_harness.records.expectations import expectations_of
from rag_harness.records.row import ExperimentResult
from tests.unit.rows import make_row

TRUTH = "The fee is €9.90."
RIGHT, WRONG, DECLINES = "It is 9.90 euros.", "It is 12 euros.", "I don't know."


def case(truth: str = TRUTH, answerable: bool = True, expect: list[dict[str, Any]] | None = None) -> Case:
    expected, problems = expectations_of(expect or [])
    assert not problems
    return Case(Query("q", "What is the fee?"), ground_truth=truth, answerable=answerable, expect=expected)


def answered(text: str, of: Case | None = None, **more: Any) -> ExperimentResult:
    of = of or case()
    told = {"llm_answer": text, "ground_truth": of.ground_truth, "answerable": of.answerable, "query": of.query.text}
    return make_row(query_id="q", **{**told, "abstained": text == DECLINES, **more})


@pytest.mark.parametrize(
    ("asked", "answer", "found"),
    [
        (case(), RIGHT, Correctness(True, "ground_truth")),
        (case(), WRONG, Correctness(False, "ground_truth")),
        (case(), DECLINES, Correctness(False, "declined")),
        (case("", answerable=False), DECLINES, Correctness(True, "declined")),
        (case("", answerable=False), RIGHT, Correctness(False, "declined")),
        (case(""), RIGHT, Correctness()),
        (case(), "", Correctness()),
        (case(expect=[{"contains": "9.90"}]), RIGHT, Correctness(True, "expectations")),
        (case(expect=[{"contains": "12"}]), RIGHT, Correctness(False, "expectations")),
        (case(expect=[{"declines": True}]), DECLINES, Correctness(True, "expectations")),
    ],
)
def test_the_first_that_can_tell_decides(asked: Case, answer: str, found: Correctness) -> None:
    assert correctness(asked, answered(answer, asked)) == found


def test_a_trial_without_an_answer_is_not_checked() -> None:
    assert correctness(case(), answered("", status="error")) == Correctness()


@pytest.mark.parametrize("demand", [{"max_ms": 1e9}, {"max_words": 50}, {"answers": True}])
def test_form_time_and_cost_do_not_make_an_answer_right(demand: dict[str, Any]) -> None:
    asked = case(expect=[demand])
    assert correctness(asked, answered(WRONG, asked)) == Correctness(False, "ground_truth")
    alone = case("", expect=[demand])
    assert correctness(alone, answered(WRONG, alone)) == Correctness(True, "expectations")


def test_what_a_model_is_to_judge_waits_for_it_unless_something_is_broken_already() -> None:
    asked = case(expect=[{"rubric": "is polite"}])
    assert correctness(asked, answered(RIGHT, asked)) == Correctness()
    both = case(expect=[{"rubric": "is polite"}, {"contains": "12"}])
    assert correctness(both, answered(RIGHT, both)) == Correctness(False, "expectations")


def test_the_measure_takes_what_the_row_says_unless_its_gold_is_another() -> None:
    measure = Correct()
    said = answered(RIGHT, correct=False, correct_by="ground_truth")
    assert measure.score(case(), said).value == 0
    assert measure.score(case("It's 9.90 euros."), said).value == 1
    assert measure.score(case(expect=[{"contains": "9.90"}]), said).value == 1
    assert measure.score(case(""), answered(RIGHT, case(""))).reason == "not checked"


@pytest.mark.parametrize(
    ("measure", "value", "right"),
    [
        ("expectations", 1.0, True),
        ("expectations", 0.9, False),
        ("factuality", 0.5, True),
        ("factuality", 0.4, False),
        ("answer_correctness", 0.5, True),
    ],
)
def test_all_expectations_are_to_be_kept_and_of_another_judged_measure_half_is_enough(
    measure: str, value: float, right: bool
) -> None:
    assert by_judge(measure, value) == right


@pytest.mark.parametrize(
    ("asked", "answer", "said"),
    [
        (case(expect=[{"contains": "12"}]), WRONG, "its expectations pass and its ground truth is not in the answer"),
        (
            case(expect=[{"contains": "12"}]),
            RIGHT,
            "its ground truth is in the answer and its expectations do not pass",
        ),
        (case(expect=[{"contains": "9.90"}]), RIGHT, ""),
        (case(expect=[{"contains": "know"}]), DECLINES, ""),
        (case("", expect=[{"contains": "12"}]), WRONG, ""),
        (case(), WRONG, ""),
    ],
)
def test_expectations_and_ground_truth_that_contradict_each_other_are_named(
    asked: Case, answer: str, said: str
) -> None:
    assert describe_disagreement(asked, answered(answer, asked)) == said
