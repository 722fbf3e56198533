"""Asking again with what was wrong: at most three times, and the model sees what it said and why it will not do."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.models.prompts import EMPTY, TRIES, Fault, ask_until_right, json_of, split_reply

AGAIN = "No: {fault}."


class Model:
    """Says what it is told to, one reply a call, the last again and again."""

    model = "stub"

    def __init__(self, *replies: str | Exception) -> None:
        self.replies, self.asked = replies, list[list[Message]]()

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        self.asked.append(list(messages))
        said = self.replies[min(len(self.asked), len(self.replies)) - 1]
        if isinstance(said, Exception):
            raise said
        return Completion(said, self.model, Usage(), 1.0)


async def number(said: str) -> int | Fault:
    return int(said) if said.isdecimal() else Fault(f"{said[:5]} is no {{number}}")


def ask(model: Model, remembered: int = 100) -> int | Fault:
    return asyncio.run(ask_until_right(model, [Message("user", "A number?")], number, AGAIN, remembered))


def test_the_first_reply_that_is_right_is_taken() -> None:
    assert ask(model := Model("7", "8")) == 7
    assert len(model.asked) == 1


def test_a_fault_is_told_with_what_was_said() -> None:
    assert ask(model := Model("seven", "7")) == 7
    told = [Message("assistant", "seven"), Message("user", "No: seven is no {number}.")]
    assert model.asked[1] == [Message("user", "A number?"), *told]


def test_after_three_tries_the_last_fault_is_what_there_is() -> None:
    assert ask(model := Model("one", "two", "three", "4")) == Fault("three is no {number}")
    assert len(model.asked) == TRIES == 3


@pytest.mark.parametrize("nothing", ["", " \n", ModelOutputError("no text")])
def test_nothing_at_all_is_a_fault_and_is_never_sent_back(nothing: str | Exception) -> None:
    assert ask(model := Model(nothing, "7")) == 7
    assert EMPTY in model.asked[1][-1].content
    assert all(message.content for message in model.asked[1])


def test_of_a_reply_that_ran_wild_little_is_sent_back() -> None:
    ask(model := Model("x" * 1_000_000, "7"), remembered=10)
    assert model.asked[1][1].content == "x" * 10


def test_a_call_that_failed_is_not_made_again_here() -> None:
    with pytest.raises(ModelCallError):
        ask(model := Model(ModelCallError("503")))
    assert len(model.asked) == 1


# What a model thought is parted from what it answered.


@pytest.mark.parametrize(
    ("reply", "thought", "answer"),
    [
        ("45 days", "", "45 days"),
        ("<think>Maybe 99?</think>45 days", "Maybe 99?", "45 days"),
        ("\n<think>\nMaybe\n\n99?\n</think>\n\n45 days", "Maybe\n\n99?", "45 days"),
        ("<thinking>a</thinking><think>b</think>45 days", "a\n\nb", "45 days"),
        ("[THINK]a[/THINK]45 days", "a", "45 days"),
        ("◁think▷a◁/think▷45 days", "a", "45 days"),
        ("Maybe 99?\n</think>\n\n45 days", "Maybe 99?", "45 days"),
        ("<think>It never closes", "It never closes", ""),
        ("<think></think>45 days", "", "45 days"),
        ("Write <think> before it, and </think> behind it.", "", "Write <think> before it, and </think> behind it."),
        ("The mark `</think>` ends it.", "", "The mark `</think>` ends it."),
        ("a < b and [c]", "", "a < b and [c]"),
    ],
)
def test_parts(reply: str, thought: str, answer: str) -> None:
    assert split_reply(reply) == (thought, answer)


@pytest.mark.parametrize(
    ("reply", "found"),
    [
        ('{"answer": "x"}', {"answer": "x"}),
        ('```json\n{"answer": "x"}\n```', {"answer": "x"}),
        ('Here it is: {"answer": "x"}. Anything else?', {"answer": "x"}),
        ('<think>{"answer": "draft"} or {45}?</think>{"answer": "x"}', {"answer": "x"}),
        ('For example {"answer": "a"}. Mine: {"answer": "x"}', {"answer": "x"}),
        ("{45} or 99?", None),
        ("no object", None),
        ("[1]", None),
        ('{"answer": "cut o', None),
    ],
)
def test_json_is_found_in_what_stands_around_it(reply: str, found: dict[str, str] | None) -> None:
    assert json_of(reply) == found


@given(st.text(max_size=80))
def test_a_reply_without_marks_is_the_answer(reply: str) -> None:
    thought, answer = split_reply(reply)
    assert answer == reply or thought
