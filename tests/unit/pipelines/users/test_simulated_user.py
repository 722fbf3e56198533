"""Simulated users: by a script or a model, in their role, and who plays them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import ModelOutputError
from rag_harness.core.protocols import Experiment
from rag_harness.core.settings import Settings
from rag_harness.core.types import Completion, Expectation, Message, PipelineOutput, Query, Scenario, Usage
from rag_harness.frontends.pytest_plugin.experiments import Experiments
from rag_harness.models.prompts import load_prompts
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.simulated_user import (
    SCRIPT,
    EndMove,
    Exchange,
    ModelMove,
    SayMove,
    ends_by_rules,
    move_of,
    out_of_role,
    played_by,
    scripted,
    simulated_user,
)
from rag_harness.runs.fingerprint import fingerprint_parts

# Who plays the users of a run, and that it counts in the identity of the experiment that they ask.

MODEL = {"user_model": "gpt-x", "user_base_url": "http://127.0.0.1:9/v1"}
TENT = Scenario("a tent?", asks=("and the deposit?",))
BEFORE = [Exchange("a tent?", "Yes.")]


def identity(folder: Path, **options: Any) -> dict[str, Any]:
    """Return what decides the rows of ``mine-sim`` under these options."""
    settings = Settings(rootdir=str(folder), **options)
    data = {"": SimpleNamespace(find_page=None)}
    cases = cast("Any", SimpleNamespace(is_played=lambda name: name.endswith("-sim"), data_of=lambda _: "", data=data))
    experiments = Experiments(Lazy(lambda: settings), cases, Lazy(lambda: RunParts(settings)), cast("Any", None))
    made = experiments.of("mine-sim", SimpleNamespace(answer=lambda _: ""))
    assert isinstance(made, Experiment)
    return fingerprint_parts(made, settings, "")


def test_without_a_model_a_script_plays() -> None:
    user = simulated_user(Settings(), lambda: None)
    assert user.by == played_by(Settings()) == SCRIPT
    assert user.known(TENT, BEFORE) == SayMove("and the deposit?")


def test_a_model_is_asked_for_what_rules_do_not_say(tmp_path: Path) -> None:
    settings = Settings(rootdir=str(tmp_path), **MODEL)
    user = simulated_user(settings, lambda: RunParts(settings))
    assert user.by == played_by(settings) == "gpt-x"
    assert user.known(TENT, []) == SayMove("a tent?")
    assert user.known(TENT, BEFORE) is None
    assert user.move(TENT, BEFORE).chat.model == "gpt-x"


def test_who_plays_the_user_and_its_code_decide_the_rows(tmp_path: Path) -> None:
    script = identity(tmp_path)
    assert script["code"]["user"]
    assert script["ingredients"]["user"][0] == SCRIPT
    by_model = identity(tmp_path, **MODEL)
    assert by_model["code"]["user"] != script["code"]["user"]
    (tmp_path / "own" / "prompts").mkdir(parents=True)
    (tmp_path / "own" / "prompts" / "user.system.md").write_text("Be brief.")
    others = [
        identity(tmp_path, **{**MODEL, "user_model": "gpt-y"}),
        identity(tmp_path, **{**MODEL, "user_base_url": "http://127.0.0.1:8/v1"}),
        identity(tmp_path, **MODEL, project="own"),
        identity(tmp_path, **MODEL, seed=8),
    ]
    users = [each["ingredients"]["user"] for each in (script, by_model, *others)]
    assert all(users.count(each) == 1 for each in users)


# A user that a model plays: what the model is told, what becomes of its replies, and when it is asked again.

MODEL_USER_TENT = Scenario(
    "can i rent a tent?",
    "impatient",
    "knows what three days cost",
    (("people", "two adults"), ("", "friday to sunday")),
    ("and the deposit?",),
    (Expectation("contains", "€36"),),
    ground_truth="the secret figure",
)
MODEL_USER_BEFORE = (Exchange("can i rent a tent?", "Yes. For how many?"),)


class Scripted:
    """A chat model that says one reply after the other."""

    model = "user"

    def __init__(self, *replies: str) -> None:
        self.replies, self.heard = list(replies), list[list[Message]]()

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        self.heard.append(list(messages))
        return Completion(self.replies.pop(0), self.model, Usage(1, 1, 1), 1.0)


def says(text: str, done: bool = False) -> str:
    return json.dumps({"say": text, "done": done})


def played(*replies: str, before: tuple[Exchange, ...] = MODEL_USER_BEFORE) -> tuple[PipelineOutput, Scripted]:
    chat = Scripted(*replies)
    move = ModelMove(chat, load_prompts("user"), MODEL_USER_TENT, before)
    return asyncio.run(move.answer(Query("s#2", move.text))), chat


def move(output: PipelineOutput) -> SayMove | EndMove:
    (decision,) = output.decisions
    return move_of(decision.outcome, output.answer.text, decision.reason)


def test_it_is_told_its_scenario_and_what_was_said_and_nothing_of_the_gold() -> None:
    output, chat = played(says("two adults"))
    system, user = chat.heard[0]
    assert "never the assistant" in system.content
    told = ["impatient", "knows what three days cost", "people: two adults", "friday to sunday", "and the deposit?"]
    for each in [*told, "Person: can i rent a tent?", "Assistant: Yes. For how many?"]:
        assert each in user.content
    assert "€36" not in user.content
    assert "secret" not in user.content
    assert move(output) == SayMove("two adults")
    assert [(call.role, call.usage.calls) for call in output.calls] == [("user", 1)]


def test_it_may_end_the_conversation() -> None:
    assert move(played(says("I have what I wanted", done=True))[0]) == EndMove("the user ends it: I have what I wanted")


@pytest.mark.parametrize("reply", ["two adults", says(""), '{"say": 3, "done": false}', says("a" * 1001)])
def test_a_reply_that_cannot_be_used_is_asked_for_again(reply: str) -> None:
    output, chat = played(reply, says("two adults"))
    assert move(output) == SayMove("two adults")
    assert "cannot be used" in chat.heard[1][-1].content


def test_what_leaves_its_role_is_asked_for_again_and_ends_it_the_third_time() -> None:
    output, chat = played(says("for 7 people"), says("two adults"))
    assert move(output) == SayMove("two adults")
    assert "the number 7" in chat.heard[1][-1].content
    output, chat = played(*[says("for 7 people")] * 3)
    found = move(output)
    assert isinstance(found, EndMove)
    assert found.out_of_role
    assert found.why == (
        "the simulated user left its role: it says the number 7, which stands nowhere before: “for 7 people”"
    )
    assert len(chat.heard) == 3


def test_it_ends_where_it_repeats_itself() -> None:
    assert move(played(says("Can I rent a tent?"))[0]) == EndMove("the user repeats itself")


def test_a_model_that_never_says_anything_is_an_error() -> None:
    with pytest.raises(ModelOutputError, match="has not said what comes next"):
        played("", "", "")


def test_what_needs_no_model_is_not_asked_of_one() -> None:
    reached = (Exchange("can i rent a tent?", "€36", kept=frozenset({0})),)
    assert ends_by_rules(MODEL_USER_TENT, (), True) == SayMove("can i rent a tent?")
    assert ends_by_rules(MODEL_USER_TENT, reached, False) == EndMove("the goal is reached")
    assert ends_by_rules(MODEL_USER_TENT, reached, True) is None
    assert ends_by_rules(MODEL_USER_TENT, MODEL_USER_BEFORE, False) is None


# Rules by which what a user says follows from its scenario: planted faults, and what people say all the same.

ROLE_TENT = Scenario(
    "can i rent a tent at Calder Bay?",
    persona="impatient, writes in fragments",
    goal="knows what three days with the bigger tent cost",
    facts=(("people", "two adults and a child"), ("", "friday to sunday")),
    asks=("and the deposit?",),
    reached=(Expectation("contains", "€36"), Expectation("number", 120)),
    ground_truth="€36 for three days.",
)
ROLE_BEFORE = [
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
    assert why in out_of_role(text, ROLE_TENT, ROLE_BEFORE)


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
    assert out_of_role(text, ROLE_TENT, ROLE_BEFORE) == ""


def test_what_was_answered_may_be_said() -> None:
    told = [*ROLE_BEFORE, Exchange("friday to sunday", "€36 for three days.", kept=frozenset({0}))]
    assert out_of_role("so €36 for three days, fine", ROLE_TENT, told) == ""


def test_what_the_scenario_says_is_no_leak() -> None:
    asks = Scenario("is it €36?", reached=(Expectation("contains", "€36"),))
    assert out_of_role("I said €36", asks, [Exchange("is it €36?", "No.")]) == ""


def test_names_are_read_in_english_alone() -> None:
    german = "Kann ich das Zelt auch für eine Woche in der Filiale mieten und dann zurückgeben?"
    assert out_of_role(german, Scenario("Hallo", asks=("Zelt?",)), [Exchange("Hallo", "Guten Tag.")]) == ""


# A scripted user: what it says next, when it ends, and that it never leaves its role or talks for ever.

SCRIPT_TENT = Scenario(
    "can i rent a tent?",
    facts=(("", "two adults and a child"), ("", "friday to sunday")),
    asks=("and the deposit?",),
    reached=(Expectation("contains", "€36"),),
)
OPENED = "can i rent a tent?"


def replies(*said: str | Exchange, scenario: Scenario = SCRIPT_TENT) -> list[Exchange]:
    """Return the turns in which these replies came."""
    turns: list[Exchange] = []
    for each in said:
        move = scripted(scenario, turns)
        assert isinstance(move, SayMove), move
        turns.append(each if isinstance(each, Exchange) else Exchange(move.text, each))
    return turns


def next_of(*said: str | Exchange, scenario: Scenario = SCRIPT_TENT) -> str:
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
