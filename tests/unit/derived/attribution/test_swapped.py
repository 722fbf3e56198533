"""Gold that is that of another question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rag_harness.core.types import Case
from rag_harness.diagnosis.gold import GoldIndex
from rag_harness.evaluation.measures.correctness import rightness
from tests.unit.derived.attribution.made_up import CASES

SHIFTED = [
    replace(case, ground_truth=other.ground_truth, evidence=other.evidence)
    for case, other in zip(CASES, [*CASES[1:], CASES[0]], strict=True)
]


def other(case: Case, answer: str, cases: list[Case]) -> str:
    return GoldIndex(cases).other(case, answer, rightness(case, answer, False))


@pytest.mark.parametrize("n", range(len(CASES)))
def test_rows_that_have_shifted(n: int) -> None:
    said = other(SHIFTED[n], CASES[n].ground_truth, SHIFTED)
    assert said == f"the answer is the ground truth of {CASES[n - 1].query.query_id}, which fits the question better"


def test_an_answer_to_another_question_is_the_answers_fault() -> None:
    assert other(CASES[0], CASES[1].ground_truth, CASES) == ""


def test_a_right_answer_and_one_that_nobody_can_hold_against_anything_say_nothing() -> None:
    assert other(CASES[0], CASES[0].ground_truth, SHIFTED) == ""
    assert other(replace(CASES[0], ground_truth="", evidence=()), CASES[1].ground_truth, CASES) == ""


def test_a_ground_truth_of_a_word_or_two_is_nobodys() -> None:
    short = replace(CASES[1], ground_truth="Yes, lamp.")
    assert other(SHIFTED[0], "Yes, lamp.", [short]) == ""


LONG = "The tent may be returned within 33 days of delivery"


@pytest.mark.parametrize(
    ("more", "is_told"), [("", True), (", if green, new", True), (", if green, new, dry, whole and washed", False)]
)
def test_the_answer_says_hardly_more_than_the_other_gold(more: str, is_told: bool) -> None:
    assert bool(other(SHIFTED[2], f"{LONG}{more}.", SHIFTED)) is is_told


def test_the_question_has_to_fit_the_other_gold_better() -> None:
    both = replace(SHIFTED[2], ground_truth=f"{SHIFTED[2].ground_truth} The tent is another matter, as is its return.")
    assert other(both, f"{LONG}.", [both, *SHIFTED]) == ""
