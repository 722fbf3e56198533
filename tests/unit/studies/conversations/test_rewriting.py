"""A question in a conversation is rewritten by a model where there is one, else by rules; the row says which."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError
from rag_harness.core.types import Chunk, Completion, Decision, Query, Usage
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.studies.conversations import MOST_MESSAGES, Rewriting

ASKED = "And the second one?"
SAID = ["What is reliable?", {"role": "assistant", "content": "It repeats."}]
BY_RULES = "And the second one? This is about: repeats reliable."
RARITY = Rarity([Chunk("p", "p.md", "Reliable topics repeat messages. A second.")])
NO_MODEL = "no model of role rewrite is configured"


class Rewriter:
    """Says what it was made with, and keeps what it was asked."""

    model = "test/rewriter"

    def __init__(self, says: str | Exception) -> None:
        self.says, self.asked = says, list[str]()

    async def complete(self, messages: Any, response_format: Any = None) -> Completion:
        self.asked.append(messages[-1].content)
        if isinstance(self.says, Exception):
            raise self.says
        return Completion(self.says, self.model, Usage(5, 3, 1), 12.0)


def rewritten(rewriter: Rewriter | None, **inputs: Any) -> tuple[str, Trace]:
    trace = Trace()
    rewriting = Rewriting(rewriter, lambda: RARITY, 200)
    return asyncio.run(rewriting.searched(Query("q", ASKED, inputs), trace)), trace


def decided(trace: Trace) -> Decision:
    (decision,) = trace.decisions
    assert decision.name == "rewrite"
    return decision


def test_a_query_that_is_no_turn_and_has_no_history_leaves_no_trace() -> None:
    text, trace = rewritten(Rewriter("x"))
    assert (text, trace) == (ASKED, Trace())


def test_a_first_turn_stays_as_it_is_and_says_so_without_a_call() -> None:
    text, trace = rewritten(Rewriter("x"), conversation="c", turn=1)
    assert (text, trace.calls) == (ASKED, {})
    assert trace.details["rewrite"] == {"asked": ASKED, "searched": ASKED, "by": "as it is"}
    assert "rewrite" in trace.milliseconds
    assert decided(trace) == Decision("rewrite", "as it is", 0.0, MOST_MESSAGES, "nothing was said before it")


def test_by_rules() -> None:
    text, trace = rewritten(None, history=SAID)
    assert text == BY_RULES
    assert trace.details["rewrite"] == {"asked": ASKED, "searched": BY_RULES, "by": "by rules"}
    assert decided(trace) == Decision("rewrite", "by rules", 2.0, MOST_MESSAGES, NO_MODEL)
    assert "rewrite" in trace.milliseconds


def test_by_a_model() -> None:
    rewriter = Rewriter(" What is best\neffort? \n")
    text, trace = rewritten(rewriter, history=SAID)
    assert text == "What is best effort?"
    assert rewriter.asked == [
        "Conversation:\nUser: What is reliable?\nAssistant: It repeats.\n\nLast question: And the second one?"
    ]
    assert decided(trace) == Decision("rewrite", "by model", 2.0, MOST_MESSAGES)
    assert trace.details["rewrite"] == {"asked": ASKED, "searched": text, "by": "by model"}
    assert [call.role for call in trace.calls["rewrite"]] == ["rewrite"]


def test_only_the_last_messages_are_sent_and_the_row_says_so() -> None:
    rewriter = Rewriter("x")
    _, trace = rewritten(rewriter, history=[f"message {n}." for n in range(40)])
    assert "message 27." not in rewriter.asked[0]
    assert "message 28." in rewriter.asked[0]
    assert decided(trace).reason == "28 older messages are not used"


@pytest.mark.parametrize(
    ("says", "fault"),
    [(" \n", "it says nothing"), ("é" * 101, "it has more than 200 bytes"), ("\ud800 " * 200, "bytes")],
)
def test_a_reply_that_cannot_be_used_leaves_it_to_the_rules(says: str, fault: str) -> None:
    text, trace = rewritten(Rewriter(says), history=SAID)
    assert text == BY_RULES
    assert decided(trace).outcome == "by rules"
    assert decided(trace).reason.startswith("the reply of the model of role rewrite cannot be used: ")
    assert fault in decided(trace).reason
    assert len(trace.calls["rewrite"]) == 1, "the call was made, and is counted"


def test_a_call_that_fails_fails_the_stage() -> None:
    with pytest.raises(ModelCallError) as failed:
        rewritten(Rewriter(ModelCallError("503")), history=SAID)
    assert failed.value.rag_trace.failed_stage == "rewrite"  # type: ignore[attr-defined]


@pytest.mark.parametrize("history", ["a", [7], [{"role": "user"}]])
def test_a_history_that_cannot_be_read_leaves_the_question_and_says_so(history: Any) -> None:
    text, trace = rewritten(Rewriter("x"), history=history)
    assert (text, trace.calls) == (ASKED, {})
    assert decided(trace).outcome == "as it is"
    assert "history is no list" in decided(trace).reason


def test_what_is_prepared_is_what_the_rules_make() -> None:
    rewriting = Rewriting(Rewriter("x"), lambda: RARITY, 200)
    assert rewriting.ahead(Query("q", ASKED, {"history": SAID})) == BY_RULES
    assert rewriting.ahead(Query("q", ASKED)) == ASKED
