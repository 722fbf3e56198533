"""Rules by which what a user says follows from its scenario: planted faults, and what people say all the same."""

from __future__ import annotations

import pytest

from rag_harness.core.types import Expectation, Scenario
from rag_harness.pipelines.simulated_user import Exchange, out_of_role

TENT = Scenario(
    "can i rent a tent at Calder Bay?",
    persona="impatient, writes in fragments",
    goal="knows what three days with the bigger tent cost",
    facts=(("people", "two adults and a child"), ("", "friday to sunday")),
    asks=("and the deposit?",),
    reached=(Expectation("contains", "€36"), Expectation("number", 120)),
    ground_truth="€36 for three days.",
)
BEFORE = [
    Exchange("can i rent a tent at Calder Bay?", "Yes: the Ridge 2 costs €14 and the Ridge 3 €18 a day. For how long?")
]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("for 4 people", "the number 4,"),
        ("for four people, please", "the number 4,"),
        ("is it cheaper after 17:30?", "the number 17:30"),
        ("can I bring it to Harrowfeld?", "the name Harrowfeld"),
        ("so €36 altogether?", "says the answer before it is given: contains “€36”"),
        ("that will be 120 then", "says the answer before it is given: number 120"),
        ("so it is €36 for three days", "says the answer before it is given"),
        ("Is there a deposit? Yes, there is.", "answers its own question"),
        ("Is there a deposit? The answer is no.", "answers its own question"),
        ("How can I help you today?", "speaks as somebody else: “how can i help”"),
        ("As an AI, I have no tent.", "speaks as somebody else: “as an ai”"),
        ("It says so in [Source 2].", "speaks as somebody else: “[source”"),
        ("Assistant: yes.", "speaks as somebody else: “assistant:”"),
        ("write me at me@example.org", "an address"),
        ("see www.example.org", "an address"),
    ],
)
def test_what_follows_from_nothing_is_found(text: str, why: str) -> None:
    assert why in out_of_role(text, TENT, BEFORE)


@pytest.mark.parametrize(
    "text",
    [
        "two adults and a child, friday to sunday",
        "for 3 days, Friday to Sunday",
        "Two adults. A child, too. The bigger one.",
        "the Ridge 3 then. is €18 for the first day?",
        "14 or 18?",
        "I do not know. Any one will do, OK?",
        "THE BIGGER ONE PLEASE AND NOT LATE",
        "and the deposit?",
        "At Calder bay?",
    ],
)
def test_what_people_say_is_let_pass(text: str) -> None:
    assert out_of_role(text, TENT, BEFORE) == ""


def test_what_was_answered_may_be_said() -> None:
    told = [*BEFORE, Exchange("friday to sunday", "€36 for three days.", kept=frozenset({0}))]
    assert out_of_role("so €36 for three days, fine", TENT, told) == ""


def test_what_the_scenario_says_is_no_leak() -> None:
    asks = Scenario("is it €36?", reached=(Expectation("contains", "€36"),))
    assert out_of_role("I said €36", asks, [Exchange("is it €36?", "No.")]) == ""


def test_names_are_read_in_english_alone() -> None:
    german = "Kann ich das Zelt auch für eine Woche in der Filiale mieten und dann zurückgeben?"
    assert out_of_role(german, Scenario("Hallo", asks=("Zelt?",)), [Exchange("Hallo", "Guten Tag.")]) == ""
