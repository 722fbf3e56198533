"""A user that a model plays: what the model is told, what becomes of its replies, and when it is asked again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.types import Completion, Expectation, Message, PipelineOutput, Query, Scenario, Usage
from rag_harness.models.prompts import load_prompts
from rag_harness.pipelines.simulated_user import EndMove, Exchange, ModelMove, SayMove, ends_by_rules, move_of

TENT = Scenario(
    "can i rent a tent?",
    "impatient",
    "knows what three days cost",
    (("people", "two adults"), ("", "friday to sunday")),
    ("and the deposit?",),
    (Expectation("contains", "€36"),),
    ground_truth="the secret figure",
)
BEFORE = (Exchange("can i rent a tent?", "Yes. For how many?"),)


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


def played(*replies: str, before: tuple[Exchange, ...] = BEFORE) -> tuple[PipelineOutput, Scripted]:
    chat = Scripted(*replies)
    move = ModelMove(chat, load_prompts("user"), TENT, before)
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
    assert ends_by_rules(TENT, (), True) == SayMove("can i rent a tent?")
    assert ends_by_rules(TENT, reached, False) == EndMove("the goal is reached")
    assert ends_by_rules(TENT, reached, True) is None
    assert ends_by_rules(TENT, BEFORE, False) is None
