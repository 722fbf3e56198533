"""Earlier turns become a part of the question where there is a model for that, and a decision says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag_harness.pipelines.trace import Trace
from rag_harness.studies.textbook.history import standalone, turns_of
from rag_harness.types import Completion, Message, Query, Usage


class Rewriter:
    """Says what it was made with, and keeps what it was asked."""

    model = "test/rewriter"

    def __init__(self, says: str) -> None:
        self.says, self.asked = says, list[str]()

    async def complete(self, messages: Any, response_format: Any = None) -> Completion:
        self.asked.append(messages[-1].content)
        return Completion(self.says, self.model, Usage(5, 3, 1), 12.0)


def rewritten(history: Any, rewriter: Rewriter | None) -> tuple[str, Trace]:
    trace = Trace()
    query = Query("q", "And the second one?", {} if history is None else {"history": history})
    return asyncio.run(standalone(query, rewriter, trace)), trace


def test_without_earlier_turns_nothing_is_decided() -> None:
    text, trace = rewritten(None, Rewriter("x"))
    assert (text, trace.decisions, trace.calls) == ("And the second one?", [], {})


def test_condensed() -> None:
    rewriter = Rewriter(" What is best effort? \n")
    text, trace = rewritten(["What is reliable?", {"role": "assistant", "content": "It repeats."}], rewriter)
    assert text == "What is best effort?"
    assert rewriter.asked == [
        "Conversation:\nStudent: What is reliable?\nAssistant: It repeats.\n\nLast question: And the second one?"
    ]
    assert [(one.name, one.outcome, one.value) for one in trace.decisions] == [("history", "condensed", 2.0)]
    assert [call.role for call in trace.calls["condense"]] == ["rewrite"]


def test_only_the_last_turns_are_sent() -> None:
    rewriter = Rewriter("x")
    rewritten([f"turn {n}" for n in range(40)], rewriter)
    assert "turn 33" not in rewriter.asked[0]
    assert "turn 34" in rewriter.asked[0]


@pytest.mark.parametrize(
    ("history", "rewriter", "reason"),
    [
        (["a"], None, "no model of role rewrite is configured"),
        ([], Rewriter("x"), "there are no earlier turns"),
        (["", " "], Rewriter("x"), "there are no earlier turns"),
        ("a", Rewriter("x"), "history is no list"),
        ([7], Rewriter("x"), "history is no list"),
        ([{"role": "user"}], Rewriter("x"), "history is no list"),
        (["a"], Rewriter(" \n"), "said nothing"),
    ],
)
def test_as_it_is(history: Any, rewriter: Rewriter | None, reason: str) -> None:
    text, trace = rewritten(history, rewriter)
    assert text == "And the second one?"
    assert trace.decisions[0].outcome == "as it is"
    assert reason in trace.decisions[0].reason


def test_turns() -> None:
    assert turns_of(["a", "b"]) == [Message("user", "a"), Message("assistant", "b")]
    assert turns_of(None) is None
