"""What was said before a question: read from its inputs, and cut to what is used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.types import Message, Query

MOST_MESSAGES = 12
"""The most messages that are used: six questions and their replies. No conversation of the study has more."""
LONGEST_MESSAGE = 2_000
"""The most characters of a message that are used."""


@dataclass(frozen=True, slots=True)
class EarlierTurns:
    """What was said before a question.

    Attributes:
        used: the last messages, the oldest first, each cut to its first ``LONGEST_MESSAGE`` characters.
        said: how many messages there are in all.
        shortened: how many of the used ones are cut.
        fault: why the history of the inputs cannot be read; empty where it can be, or where there is none.
    """

    used: tuple[Message, ...] = ()
    said: int = 0
    shortened: int = 0
    fault: str = ""

    @property
    def left_out(self) -> str:
        """What is not used, in words; empty where everything is."""
        older = self.said - len(self.used)
        found = [self.fault] if self.fault else []
        found += [f"{older} older messages are not used"] if older else []
        found += [f"{self.shortened} are cut to {LONGEST_MESSAGE} characters"] if self.shortened else []
        return "; ".join(found)


def earlier_turns(query: Query) -> EarlierTurns:
    """Return what was said before a query: messages in its inputs under ``history``, or texts by both in turn."""
    said = messages_of(query.inputs.get("history", ()))
    if said is None:
        return EarlierTurns(fault="history is no list of texts or of objects with role and content")
    last = said[-MOST_MESSAGES:]
    used = tuple(replace(each, content=each.content[:LONGEST_MESSAGE]) for each in last)
    return EarlierTurns(used, len(said), sum(len(each.content) > LONGEST_MESSAGE for each in last))


def messages_of(history: Any) -> list[Message] | None:
    """Return messages from objects with ``role`` and ``content``, or from texts by user and assistant in turn.

    Empty ones are left out. The result is None if ``history`` is neither.
    """
    if not isinstance(history, Sequence) or isinstance(history, str):
        return None
    found = [_message(each, "user" if n % 2 == 0 else "assistant") for n, each in enumerate(history)]
    messages = [each for each in found if each is not None]
    return [each for each in messages if each.content] if len(messages) == len(found) else None


def _message(said: Any, role: str) -> Message | None:
    if isinstance(said, str):
        return Message(role, said.strip())
    if isinstance(said, Mapping) and isinstance(said.get("content"), str):
        # Only these two may speak to a model in somebody's name.
        return Message("assistant" if said.get("role", role) == "assistant" else "user", said["content"].strip())
    return None
