"""What was said before a turn, as its row keeps it: for the page and the terminal, whoever wrote the row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag_harness.types import Query

_HISTORY = "history"


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """A message of a conversation.

    Attributes:
        role: ``user`` or ``assistant``, or another word of whoever gave the history.
        text: what was said.
        failed: whether it stands for a reply that failed.
    """

    role: str
    text: str
    failed: bool = False


def chat_before(query: Query) -> list[SaidMessage]:
    """Return what was said before a turn, the oldest first; empty where the query is no turn, or the first.

    Empty, too, where the history is no list of messages, as a row from elsewhere may have it.
    """
    history = query.inputs.get(_HISTORY) if query.place else None
    if not isinstance(history, list) or not all(map(_is_message, history)):
        return []
    return [SaidMessage(each["role"], each["content"], each.get("failed") is True) for each in history]


def inputs_beside(query: Query) -> dict[str, Any]:
    """Return the inputs that say nothing of the conversation; all of them where the query is no turn."""
    of_chat = {*query.place, *([_HISTORY] if chat_before(query) else [])}
    return {name: value for name, value in query.inputs.items() if name not in of_chat}


def _is_message(each: object) -> bool:
    return isinstance(each, Mapping) and isinstance(each.get("role"), str) and isinstance(each.get("content"), str)
