"""Answer relevancy: the raw cosine, and what has none."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from rag_harness.evaluation.measures.opinion import Relevancy
from tests.unit.measures.judged.opinions import FULL, Told, judged_measure, score


@pytest.mark.parametrize("cosine", [1.0, 0.25, 0.0, -0.5, -1.0])
def test_the_raw_cosine_is_kept(cosine: float) -> None:
    said = score("answer_relevancy", Told(relevant=Relevancy(cosine, detail={"questions": ["why?"]})))
    assert said.value == cosine
    assert said.detail == {"noncommittal": False, "questions": ["why?"]}


def test_rounding_does_not_leave_the_range() -> None:
    assert score("answer_relevancy", Told(relevant=Relevancy(1.0000001))).value == 1.0
    assert score("answer_relevancy", Told(relevant=Relevancy(-1.0000001))).value == -1.0


@pytest.mark.parametrize("cosine", [0.9, None])
def test_a_noncommittal_answer_is_0(cosine: float | None) -> None:
    said = score("answer_relevancy", Told(relevant=Relevancy(cosine, noncommittal=True)))
    assert (said.value, said.detail["noncommittal"]) == (0.0, True)


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (Relevancy(math.nan), "cosine nan is not in [-1, 1]"),
        (Relevancy(math.inf), "cosine inf is not in [-1, 1]"),
        (Relevancy(1.5), "cosine 1.5 is not in [-1, 1]"),
        (Relevancy(None, reason="no question came back"), "no question came back"),
        (Relevancy(None), "the judge gave no cosine"),
    ],
)
def test_what_is_no_cosine_is_no_score(said: Relevancy, reason: str) -> None:
    found = score("answer_relevancy", Told(relevant=said))
    assert (found.value, found.reason) == (None, reason)


def test_an_abstention_is_0_without_asking_where_there_was_an_answer() -> None:
    assert score("answer_relevancy", Told(), replace(FULL, abstained=True)).value == 0.0
    assert score("answer_relevancy", Told(), replace(FULL, answer=" \n")).value == 0.0


def test_a_right_abstention_has_no_relevancy() -> None:
    unanswerable = replace(FULL, answerable=False)
    assert judged_measure("answer_relevancy").undefined(replace(unanswerable, abstained=True)) == "a right abstention"
    assert score("answer_relevancy", Told(relevant=Relevancy(0.7)), unanswerable).value == 0.7
