"""A question as a text that is edited, and back."""

from __future__ import annotations

import pytest

from rag_harness.authoring.questions.review.fields import FIELDS, changes_of, text_of
from rag_harness.authoring.questions.review.reviewed_rows import QueryRow
from rag_harness.errors import DataError
from tests.unit.authoring.questions.review.drafts import ROWS, row

UNDERLINED = "Heading\n=== question\nnot a field\n==== evidence\nneither"


@pytest.mark.parametrize(
    "written",
    [
        *ROWS,
        row(9, query="島の荷物は？", ground_truth="تسعة أيام"),
        row(9, evidence=[{"filename": "a b.md", "quote": UNDERLINED}], ground_truth=UNDERLINED),
        row(9, evidence=[{"filename": "t.md", "quote": "| a | b |\n|---|---|\n| # c | d |"}]),
    ],
)
def test_what_is_not_changed_comes_back_as_it_was(written: QueryRow) -> None:
    assert changes_of(text_of(written)) == {name: written[name] for name in FIELDS.values()}


def test_a_quote_can_be_added_changed_and_removed() -> None:
    text = text_of(ROWS[0]).replace("9 days at", "9 days\nat") + "\n=== evidence club.md\nClub evenings end at 21:30.\n"
    first, second = changes_of(text)["evidence"]
    assert first["quote"].startswith("Island parcels are held for 9 days\nat")
    assert second == {"filename": "club.md", "quote": "Club evenings end at 21:30."}
    assert changes_of(text_of(ROWS[0]).split("\n=== evidence")[0])["evidence"] == []


def test_fields_that_are_missing_are_those_of_a_row_without_them() -> None:
    changes = changes_of(text_of({"query_id": "a", "query": "Why?"}))
    assert changes == {
        "query_type": "direct",
        "query": "Why?",
        "ground_truth": "",
        "context_reference": [],
        "evidence": [],
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("all of it was deleted but this", "No line begins with ==="),
        ("=== question\na\n", "Missing: kind, answer, pages."),
        (text_of(ROWS[0]) + "\n=== hint\nnone\n", "Not understood: hint."),
        (text_of(ROWS[0]) + "\n=== answer\nagain\n", "Not understood: answer, answer."),
        (text_of({**ROWS[0], "query": " "}), "The question is empty. Write one"),
        (text_of({**ROWS[0], "query_type": ""}), "The kind is empty. Write one"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        changes_of(text)


def test_an_empty_text_changes_nothing() -> None:
    assert changes_of("\n \n") == {}


def test_a_turn_has_its_question_that_stands_alone_and_others_have_none() -> None:
    turn = {**ROWS[0], "conversation": "c1", "turn": 2}
    assert "\n=== alone\n" not in text_of(ROWS[0])
    assert changes_of(text_of(turn))["standalone"] == ""
    assert changes_of(text_of({**turn, "standalone": "How long?"}))["standalone"] == "How long?"
    assert "standalone" not in changes_of(text_of(turn).replace("=== alone\n", ""))
