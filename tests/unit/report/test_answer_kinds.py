"""The study's categories of answers, one by one and at their borders."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.evaluation.measures.judged import CATEGORIES, kinds_shown
from rag_harness.tables.blocks import MeasureArrays
from rag_harness.tables.judged_columns import answer_kinds

SHARE, COSINE = st.floats(0, 1), st.floats(-1, 1)


def kind_of(values: Sequence[float | None], abstained: bool, answerable: bool) -> str:
    """Return the kind of one answer, by its context precision, faithfulness and relevancy."""
    parts = [
        MeasureArrays(np.array([np.nan if each is None else each]), np.array([each is None]), ()) for each in values
    ]
    (found,) = answer_kinds(parts, np.array([abstained]), np.array([answerable]))
    return found


@pytest.mark.parametrize(
    ("cp", "f", "ar", "expected"),
    [
        (0.71, 0.71, 0.71, "Clean Pass"),
        (0.7, 0.8, 0.8, "Unclassified"),
        (0.8, 0.7, 0.8, "Unclassified"),
        (0.8, 0.8, 0.7, "Unclassified"),
        (0.61, 0.39, 0.9, "Hallucination"),
        (0.61, 0.39, 0.1, "Hallucination"),
        (0.6, 0.39, 0.9, "Unclassified"),
        (0.61, 0.4, 0.9, "Unclassified"),
        (0.39, 0.71, 0.9, "Retrieval Failure"),
        (0.39, 0.71, 0.1, "Retrieval Failure"),
        (0.4, 0.71, 0.9, "Unclassified"),
        (0.4, 0.71, 0.39, "Irrelevant"),
        (0.9, 0.71, -0.2, "Irrelevant"),
        (0.9, 0.7, 0.39, "Unclassified"),
        (0.39, 0.39, 0.39, "Total Failure"),
        (0.4, 0.39, 0.39, "Unclassified"),
        (0.39, 0.39, 0.4, "Unclassified"),
    ],
)
def test_categories_and_their_borders(cp: float, f: float, ar: float, expected: str) -> None:
    assert kind_of([cp, f, ar], abstained=False, answerable=True) == expected


def test_what_the_five_cannot_say() -> None:
    good = [0.9, 0.9, 0.9]
    assert kind_of(good, abstained=True, answerable=False) == "Correct Abstention"
    assert kind_of(good, abstained=True, answerable=True) == "Wrong Abstention"
    assert kind_of([0.9, None, 0.9], abstained=False, answerable=True) == "Unmeasured"
    assert kind_of([None, None, None], abstained=False, answerable=True) == "Unmeasured"


def test_who_answers_what_the_documents_do_not_answer_is_of_a_kind_of_its_own() -> None:
    """However well the answer keeps to its chunks, and whether or not that could be measured."""
    for found in ([0.9, 0.9, 0.9], [0.9, 0.1, 0.9], [None, None, None]):
        assert kind_of(found, abstained=False, answerable=False) == "Answered Unanswerable"
    assert kinds_shown(["Unmeasured"]) == [*CATEGORIES[:5], "Unmeasured"]


def test_the_order_of_the_categories() -> None:
    assert CATEGORIES == (
        "Clean Pass", "Hallucination", "Retrieval Failure", "Irrelevant", "Total Failure", "Unclassified",
        "Correct Abstention", "Wrong Abstention", "Answered Unanswerable", "Unmeasured",
    )  # fmt: skip


@given(SHARE, SHARE, COSINE)
def test_every_answer_has_a_category(cp: float, f: float, ar: float) -> None:
    assert kind_of([cp, f, ar], abstained=False, answerable=True) in CATEGORIES[:6]
