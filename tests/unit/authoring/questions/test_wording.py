"""Other words for a question: what must stay stays, and fewer words are shared with the page."""

from __future__ import annotations

from random import Random

import pytest

from rag_harness.authoring.questions.answerable import in_other_words, with_topic
from rag_harness.authoring.questions.english import asked_by_reader, ing, lower_first, past, plural, read_forms, third
from rag_harness.core.text.terms import figures


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ("What is the price for Pine Lantern?", "How much do I have to pay for Pine Lantern?"),
        ("How often are statuses refreshed?", "At what intervals are statuses refreshed?"),
        ("Can I cancel a parcel within 3 days?", "Can I call off a package within 3 days?"),
        ("How do I configure `retry_policy`?", "How do I set up `retry_policy`?"),
        ('What does "cancel parcel" do?', 'What does "cancel parcel" do?'),
        ("What does cancel_order.parcel return?", "What does cancel_order.parcel return?"),
        ("How long does the price match credit last?", "How long does the price match credit last?"),
    ],
)
def test_other_words(question: str, said: str) -> None:
    assert in_other_words(question, Random(3)) == said


def test_figures_stay() -> None:
    question = "What is the discount for orders above €1,500 within 30 days?"
    assert figures(in_other_words(question, Random(1))) == figures(question)


def test_every_entry_of_the_list_is_inflected_and_none_stands_for_itself() -> None:
    forms = read_forms()
    assert forms.words["cancelled"] == [("past", "called off")]
    for written, others in forms.words.items():
        assert all(said and said != written for _, said in others)


@pytest.mark.parametrize(
    ("form", "word", "made"),
    [
        (plural, "fee", "fees"),
        (plural, "country", "countries"),
        (third, "go", "goes"),
        (third, "carry", "carries"),
        (ing, "make", "making"),
        (ing, "put", "putting"),
        (past, "keep", "kept"),
        (past, "tailor", "tailored"),
        (past, "modify", "modified"),
    ],
)
def test_forms(form: object, word: str, made: str) -> None:
    assert callable(form)
    assert form(word) == made


@pytest.mark.parametrize(
    ("page", "reader"),
    [
        ("if you are sure, we send you your label", "if I am sure, you send me my label"),
        ("if one of you leaves", "if one of us leaves"),
        ("can you order it", "can I order it"),
        ("a thing of its own", "a thing of its own"),
    ],
)
def test_who_speaks(page: str, reader: str) -> None:
    assert asked_by_reader(page) == reader


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Gift cards are sent.", "gift cards are sent."),
        ("Pydantic AI reads it.", "Pydantic AI reads it."),
        ("Zone 1 is near.", "Zone 1 is near."),
        ("Bedrock reads it.", "Bedrock reads it."),
        ("retry_policy is set.", "retry_policy is set."),
    ],
)
def test_capitals(text: str, said: str) -> None:
    assert lower_first(text, {"Bedrock"}) == said


def test_a_topic_stands_in_front_or_behind() -> None:
    question = "For how many days is the invite valid?"
    assert with_topic(question, "household sharing", "About {about}: {asked}") == (
        "About household sharing: for how many days is the invite valid?"
    )
    assert with_topic(question, "household sharing", "{Asked} (I mean {about}.)") == (
        "For how many days is the invite valid? (I mean household sharing.)"
    )
