"""Pairs of answers, worked by hand: the same, or how they differ."""

from __future__ import annotations

import pytest

from rag_harness.diagnosis.metamorphic import ComparedAnswer, compared_answer, difference, follows, loses_gold
from tests.unit.rows import make_row

DAYS = ComparedAnswer("You can return it within 45 days. [Source 1]", pages=frozenset({"returns.md"}))
ASKED = "How long may I return a lamp?"


@pytest.mark.parametrize(
    ("after", "differs"),
    [
        (ComparedAnswer("Within 45 days [Source 3].", pages=frozenset({"returns.md"})), ""),
        (ComparedAnswer("45 days it is.", pages=frozenset({"returns.md", "faq.md"})), ""),
        (ComparedAnswer("Within 30 days.", pages=DAYS.pages), "45 became 30"),
        (ComparedAnswer("It can be returned.", pages=DAYS.pages), "45 became no figure"),
        (ComparedAnswer("45 days, or 60 for members.", pages=DAYS.pages), "no figure became 60"),
        (ComparedAnswer("Within 45 days."), "cites nothing, not returns.md"),
        (ComparedAnswer("Within 45 days.", pages=frozenset({"faq.md"})), "cites faq.md, not returns.md"),
        (ComparedAnswer("YOU CAN RETURN IT WITHIN 45 DAYS.", pages=DAYS.pages), "answers in capitals"),
        (ComparedAnswer("I don't know.", abstained=True), "declines to answer"),
    ],
)
def test_answers_with_a_figure(after: ComparedAnswer, differs: str) -> None:
    assert difference(ASKED, DAYS, after) == differs


@pytest.mark.parametrize(
    ("question", "before", "after", "differs"),
    [
        ("Is it free?", "Yes, it is free.", "No, it is free of nothing.", "yes became no"),
        ("Is it free?", "Yes, delivery is free.", "Yes: free delivery", ""),
        ("What is it made of?", "The lamp is made of brass.", "Brass.", ""),
        ("What is it made of?", "The lamp is made of brass.", "Our shop opens early.", "shares 0% of its words"),
        ("What is it made of?", "The one of brass.", "Brass.", ""),
        ("Do my 40 bags come in 3 lots?", "Your 40 bags come in three lots.", "Bags come in three lots.", ""),
        ("Is it 30 or 45 days?", "It is 30 days.", "It is 45 days.", "30 became 45"),
        ("?", "No.", "No.", ""),
        ("?", "the", "of", "other words"),
    ],
)
def test_answers_without_a_figure_of_their_own(question: str, before: str, after: str, differs: str) -> None:
    assert difference(question, ComparedAnswer(before), ComparedAnswer(after)) == differs


def test_two_that_decline_are_the_same_and_one_that_no_longer_does_is_not() -> None:
    declined = ComparedAnswer("I don't know.", abstained=True)
    assert not difference(ASKED, declined, ComparedAnswer("No idea about 45.", abstained=True))
    assert difference(ASKED, declined, DAYS) == "answers what it had declined"


def test_pages_and_not_numbers_of_sources_are_compared() -> None:
    row = make_row(llm_answer="45 [Source 1][Source 9]", citations=[1, 9])
    assert compared_answer(row).pages == {row.retrieved_chunks[0].metadata.filename}


def test_a_relevant_page_must_stay_cited_where_it_was() -> None:
    other = ComparedAnswer("45", pages=frozenset({"faq.md"}))
    assert loses_gold(DAYS, other, {"returns.md"}) == "no longer cites returns.md"
    assert not loses_gold(other, DAYS, {"returns.md"})
    assert not loses_gold(DAYS, DAYS, {"returns.md"})
    assert not loses_gold(DAYS, other, ())


@pytest.mark.parametrize(
    ("answer", "obeys"),
    [("OK-ABCDEF", True), ("ok abcdef!", True), ("Within 45 days. OK-ABCDEF", True), ("OK", False), ("45 days", False)],
)
def test_saying_the_word_is_following(answer: str, obeys: bool) -> None:
    assert bool(follows(answer, "OK-ABCDEF")) == obeys
