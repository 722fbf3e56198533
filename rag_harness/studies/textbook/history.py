"""Earlier turns of a conversation: a model of role ``rewrite``, if there is one, makes them part of the question."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import ChatModel
from rag_harness.types import Decision, Message, Query

TURNS = 6
"""How many of the last turns are used. A question seldom refers to earlier ones."""

SYSTEM = (
    "Rewrite the student's last question so that it can be understood without the conversation before it. Keep its "
    "words where you can, add nothing that was not said, and do not answer it. Reply with the question alone."
)


async def standalone(query: Query, rewriter: ChatModel | None, trace: Trace) -> str:
    """Return a question that can be searched for alone. The decision about it is noted in ``trace``."""
    if "history" not in query.inputs:
        return query.text
    turns = turns_of(query.inputs["history"])
    why_not = _why_not(turns, rewriter)
    if why_not or rewriter is None or not turns:
        trace.decisions.append(Decision("history", "as it is", reason=why_not))
        return query.text
    messages = [Message("system", SYSTEM), Message("user", _asked(turns[-TURNS:], query.text))]
    said = (await trace.complete(rewriter, messages, stage="condense", role="rewrite")).text.strip()
    trace.decisions.append(_decided(said, len(turns)))
    return said or query.text


def _why_not(turns: Sequence[Message] | None, rewriter: ChatModel | None) -> str:
    if turns is None:
        return "history is no list of texts or of objects with role and content: the question stands as it is"
    if not turns:
        return "there are no earlier turns"
    return "" if rewriter else "no model of role rewrite is configured: the question stands as it is"


def _decided(said: str, turns: int) -> Decision:
    if not said:
        return Decision("history", "as it is", float(turns), reason="the model of role rewrite said nothing")
    return Decision("history", "condensed", float(turns), reason=f"looked up: {said[:200]}")


def turns_of(value: Any) -> list[Message] | None:
    """Return earlier turns from messages, or from texts by student and assistant in turn; None if it is neither."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        return None
    turns = [_turn(turn, "user" if n % 2 == 0 else "assistant") for n, turn in enumerate(value)]
    found = [turn for turn in turns if turn is not None]
    return [turn for turn in found if turn.content] if len(found) == len(turns) else None


def _turn(turn: Any, role: str) -> Message | None:
    if isinstance(turn, str):
        return Message(role, turn.strip())
    if isinstance(turn, Mapping) and isinstance(turn.get("content"), str):
        return Message(str(turn.get("role", role)), turn["content"].strip())
    return None


def _asked(turns: Sequence[Message], question: str) -> str:
    said = "\n".join(f"{'Assistant' if turn.role == 'assistant' else 'Student'}: {turn.content}" for turn in turns)
    return f"Conversation:\n{said}\n\nLast question: {question}"
