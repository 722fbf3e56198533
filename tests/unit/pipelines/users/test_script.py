"""A scripted user: what it says next, when it ends, and that it never leaves its role or talks for ever."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.types import Expectation, Scenario
from rag_harness.pipelines.simulated_user import EndMove, Exchange, SayMove, out_of_role, scripted

TENT = Scenario(
    "can i rent a tent?",
    facts=(("", "two adults and a child"), ("", "friday to sunday")),
    asks=("and the deposit?",),
    reached=(Expectation("contains", "€36"),),
)
OPENED = "can i rent a tent?"


def replies(*said: str | Exchange, scenario: Scenario = TENT) -> list[Exchange]:
    """Return the turns in which these replies came."""
    turns: list[Exchange] = []
    for each in said:
        move = scripted(scenario, turns)
        assert isinstance(move, SayMove), move
        turns.append(each if isinstance(each, Exchange) else Exchange(move.text, each))
    return turns


def next_of(*said: str | Exchange, scenario: Scenario = TENT) -> str:
    """Return what is said after these replies, or why it is over."""
    move = scripted(scenario, replies(*said, scenario=scenario))
    return move.text if isinstance(move, SayMove) else f"over: {move.why}"


def declines(said: str) -> Exchange:
    return Exchange(said, "I don't know.", declined=True)


def reaches(said: str) -> Exchange:
    return Exchange(said, "€36", kept=frozenset({0}))


def test_it_opens_word_for_word() -> None:
    assert next_of() == OPENED


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        ("For how many people?", "two adults and a child"),
        ("Gladly. From which day to which?", "friday to sunday"),
        ("How many are you, and for which days?", "two adults and a child, friday to sunday"),
        ("Is the child older than six?", "two adults and a child"),
        # What no word matches gets the next fact.
        ("Where shall we deliver it?", "two adults and a child"),
    ],
)
def test_it_tells_the_fact_that_an_answer_asks_for(reply: str, told: str) -> None:
    assert next_of(reply) == told


def test_a_fact_is_told_for_words_of_its_cue() -> None:
    scenario = Scenario("hi", facts=(("colour", "the dark one"), ("size", "the big one")), asks=("price?",))
    assert next_of("Which size?", scenario=scenario) == "the big one"


def test_a_polite_question_asks_for_nothing() -> None:
    assert next_of("Yes, you can. Is there anything else I can help you with?") == "and the deposit?"


def test_it_goes_on_with_its_questions_when_it_has_an_answer() -> None:
    assert next_of("Yes.") == "and the deposit?"
    assert next_of("Yes.", "€120.") == "two adults and a child, friday to sunday"  # what nobody has asked for


def test_a_declined_question_is_said_once_more_with_all_it_knows() -> None:
    again = f"{OPENED} two adults and a child, friday to sunday"
    assert next_of(declines(OPENED)) == again
    assert next_of(declines(OPENED), declines(again)) == "and the deposit?"
    assert next_of(declines(OPENED), declines(again), declines("and the deposit?")) == (
        "over: the user gives up: the answer declines"
    )


def test_it_ends_at_its_goal_when_all_is_asked() -> None:
    assert next_of(reaches(OPENED)) == "and the deposit?"
    assert next_of(reaches(OPENED), "€120.") == "over: the goal is reached"


def test_a_goal_may_be_reached_by_several_answers() -> None:
    both = Scenario("hi", asks=("and?",), reached=(Expectation("contains", "a"), Expectation("contains", "b")))
    first, second = Exchange("hi", "a", kept=frozenset({0})), Exchange("and?", "b", kept=frozenset({1}))
    assert next_of(first, second, scenario=both) == "over: the goal is reached"
    assert next_of(first, Exchange("and?", "c"), scenario=both).startswith("over: the user gives up: nothing is left")


def test_without_a_goal_it_ends_when_all_is_asked() -> None:
    assert next_of("yes", "no", scenario=Scenario("hi", asks=("and?",))) == "over: all is asked"


def test_it_ends_where_the_answers_repeat() -> None:
    vague = "Please be more specific."
    assert next_of(vague, "please be MORE specific") == "over: the answers repeat each other"
    # Two questions may have one answer.
    asking = Scenario("hi", asks=("a?", "b?", "c?"))
    assert next_of(vague, vague, scenario=asking) == "b?"
    assert next_of(vague, vague, vague, scenario=asking) == "over: the answers repeat each other"
    assert next_of(vague, vague, "Which one?", vague, scenario=asking) == "over: all is asked"


def test_a_turn_that_failed_is_said_again_once() -> None:
    away = Exchange(OPENED, "Sorry, something went wrong. Please ask again.", failed=True)
    assert next_of(away) == OPENED
    assert next_of(away, away) == "over: the user gives up: two turns failed"
    assert next_of(away, "Yes.") == "and the deposit?"


SAID = ("how", "many", "days", "price", "36", "two", "Tent", "deposit", "colour", "yes")
WORDS = st.lists(st.sampled_from(SAID), max_size=6).map(" ".join)
TEXTS = st.tuples(WORDS.filter(bool), st.sampled_from([".", "?", "", " I don't know."])).map("".join)
SCENARIOS = st.builds(
    Scenario,
    opening=TEXTS,
    facts=st.lists(st.tuples(WORDS, TEXTS), max_size=3).map(tuple),
    asks=st.lists(TEXTS, max_size=3).map(tuple),
    reached=st.sampled_from([(), (Expectation("contains", "36"),)]),
    ground_truth=st.sampled_from(["", "36"]),
)


HEARD = st.tuples(TEXTS, st.booleans(), st.booleans())


def ends(scenario: Scenario, hear: Callable[[], tuple[str, bool, bool]]) -> None:
    turns: list[Exchange] = []
    for _ in range(30):
        move = scripted(scenario, turns)
        if isinstance(move, EndMove):
            assert not move.out_of_role
            return
        assert not out_of_role(move.text, scenario, turns)
        reply, declined, failed = hear()
        turns.append(Exchange(move.text, reply, declined, failed))
    pytest.fail(f"it still talks after {len(turns)} turns: {[each.said for each in turns]}")


@given(scenario=SCENARIOS, data=st.data())
def test_it_ends_whatever_it_hears_and_says_nothing_that_its_scenario_does_not(
    scenario: Scenario, data: st.DataObject
) -> None:
    ends(scenario, lambda: data.draw(HEARD))


def test_who_asks_again_with_a_fact_does_not_answer_itself() -> None:
    heard = iter([("how.", True, False), *[("how.", False, False)] * 29])
    ends(Scenario("how?", facts=(("", "yes."),)), lambda: next(heard))
