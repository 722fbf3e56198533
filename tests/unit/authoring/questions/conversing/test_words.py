"""The words of turns that leave something out, wrong figures, and how another thing is spoken of."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.authoring.questions.conversing.relations import references, short_name
from rag_harness.authoring.questions.conversing.short_words import (
    affirmed,
    attribute_of_it,
    back_to,
    is_plural,
    without_subject,
    without_thing,
)
from rag_harness.authoring.questions.conversing.talk import Sources
from rag_harness.authoring.questions.conversing.wrong_figures import wrong_figure
from rag_harness.authoring.questions.document_collection import DocumentCollection
from rag_harness.words.terms import figures
from tests.unit.authoring.questions.shop import documents


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("45 days", "90 days"),
        ("€499", "€249"),
        ("€4.90", "€8.90"),
        ("7.8 kg", "14.8 kg"),
        ("1,350 W", "675 W"),
        ("€12,400", "€6,200"),
        ("18:00", "20:00"),
        ("23:30", "01:30"),
        ("up to 2 units", "up to 4 units"),
        ("1 day", ""),
        ("3–5 working days", ""),
        ("08:00–17:00", ""),
        ("50×18 cm", ""),
        ("free", ""),
        ("HK-2210", ""),
        ("", ""),
    ],
)
def test_a_wrong_figure_is_another_one_of_its_kind(right: str, wrong: str) -> None:
    assert wrong_figure(right) == wrong


DIGITS = "0123456789٣"
FIGURES = st.builds(
    "{}{}{}{}{}".format,
    st.sampled_from(["", "€", "$"]),
    st.text(DIGITS, min_size=1, max_size=6),
    st.sampled_from(["", ".", ","]),
    st.text(DIGITS, max_size=3),
    st.sampled_from(["", " ", "kg", " kg", "days", " days", "%", " %"]),
)


@given(st.text(max_size=40) | FIGURES)
def test_a_wrong_figure_is_never_the_right_one(right: str) -> None:
    assert wrong_figure(right) != right or not wrong_figure(right)
    if wrong_figure(right):
        assert figures(wrong_figure(right)) != figures(right)


@pytest.mark.parametrize(
    ("asked", "subject", "short"),
    [
        ("how many days does the search take", "the search", "how many days does it take"),
        ("for how many years are gift cards valid", "gift cards", "for how many years are they valid"),
        ("can a gift Refill be ended by the recipient?", "a gift Refill", "can it be ended by the recipient?"),
        ("can gift cards be returned", "gift cards", "can they be returned"),
        ("do I need to send the receipt", "I", ""),
        ("how is the search paid", "the cost", ""),
        ("does the searchlight go out", "the search", ""),
    ],
)
def test_a_pronoun_for_a_subject(asked: str, subject: str, short: str) -> None:
    assert without_subject(asked, subject) == short


@pytest.mark.parametrize(
    ("asked", "short"),
    [
        ("how much does the care set for the Gantry pump cost", "how much does the care set for it cost"),
        ("what does the Gantry pump not cover", "what does it not cover"),
        ("what is the surface of the Gantry pump wiped with", "what is the surface of it wiped with"),
        ("when is a loan unit for the time of the Gantry pump repair given", ""),
        ("what does the pump do", ""),
    ],
)
def test_it_for_a_planned_thing(asked: str, short: str) -> None:
    assert without_thing(asked, "Gantry pump") == short


@pytest.mark.parametrize(
    ("asked", "subject", "said"),
    [
        ("does a repair restart the warranty", "a repair", "a repair restarts the warranty"),
        ("do batteries carry a charge", "batteries", "batteries carry a charge"),
        ("is an invoice number an order number", "an invoice number", "an invoice number is an order number"),
        ("does the desk have a drawer", "the desk", "the desk has a drawer"),
        ("do I need to send it", "I", ""),
    ],
)
def test_a_question_as_what_a_user_takes_for_true(asked: str, subject: str, said: str) -> None:
    assert affirmed(asked, subject) == said


def test_names_and_attributes() -> None:
    assert is_plural("colours")
    assert is_plural("hours of work")
    assert not is_plural("process")
    assert not is_plural("price per 10 pieces")
    assert short_name("Zone 1 – Central") == "Zone 1"
    assert short_name("Mower 40 (GB-5002)") == "Mower 40"
    assert {attribute_of_it("colours", Random(n)) for n in range(20)} == {
        "And the colours?",
        "What about the colours?",
        "And what are the colours?",
    }
    assert {back_to("", "What does it do?", Random(n)) for n in range(9)} == {
        "Back to what I asked first: what does it do?",
        "Back to my first question: what does it do?",
    }
    assert back_to("", "RealtimeModel_x?", Random(3)).endswith(": RealtimeModel_x?")


TABLES = """# Things

| Lamp | Weight | Price | Range |
|---|---|---|---|
| Pine Lantern | 1.2 kg | €39 | 12 m |
| Brass Lantern | 2.4 kg | €89 | 30 m |

## Ropes

| Rope | Weight | Price |
|---|---|---|
| Hemp Rope | 4 kg | €9 |
| Silk Rope | 2 kg | €19 |
| Jute Rope | 3 kg | €7 |
| Wire | | €8 |
"""


def test_of_two_things_the_other_one_is_meant_and_of_several_the_cheapest() -> None:
    sources = Sources(DocumentCollection(documents(things=TABLES)), Random(0))
    facts = {(fact.parts["thing"], fact.parts["attribute"]): fact for fact in sources.facts("things.md")}
    lamp, rope = (sources.focus_of(facts[key]) for key in (("Pine Lantern", "range"), ("Hemp Rope", "weight")))
    of_two = {(each.name, each.thing) for each in references(lamp, Random(0))}
    assert of_two == {
        ("the other one", "Brass Lantern"),
        ("the more expensive one", "Brass Lantern"),
        ("the heavier one", "Brass Lantern"),
    }
    of_many = {each.name: each.thing for each in references(rope, Random(0)) if not each.is_named}
    assert of_many == {"the cheapest one": "Jute Rope", "the most expensive one": "Silk Rope"}
    price = sources.focus_of(facts["Hemp Rope", "price"])
    assert not [each for each in references(price, Random(0)) if not each.is_named], "the wire has no weight"
