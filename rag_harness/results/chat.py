"""What was said before a turn, as its row keeps it: for the page and the terminal, whoever wrote the row.

The page's script groups messages as ``turns_before`` does, and finds what was searched as ``searched_for`` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rag_harness.results.row import ExperimentResult
from rag_harness.types import Query

_HISTORY, _USER = "history", "user"
_REWRITE, _SEARCHED = "rewrite", "searched"
"""Stage of a pipeline that makes a question that stands alone, and the key of its detail that has it."""


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


def turns_before(said: Sequence[SaidMessage]) -> list[list[SaidMessage]]:
    """Return messages by turn: each begins with what the user says."""
    turns: list[list[SaidMessage]] = []
    for each in said:
        if each.role == _USER or not turns:
            turns.append([])
        turns[-1].append(each)
    return turns


def searched_for(row: ExperimentResult) -> str:
    """Return what the pipeline looked up in place of the question; empty where it did not say, or looked that up."""
    found = next((stage.detail.get(_SEARCHED) for stage in row.stages if stage.name == _REWRITE), None)
    return found if isinstance(found, str) and found != row.query else ""


def inputs_beside(query: Query) -> dict[str, Any]:
    """Return the inputs that say nothing of the conversation; all of them where the query is no turn."""
    of_chat = {*query.place, *([_HISTORY] if chat_before(query) else [])}
    return {name: value for name, value in query.inputs.items() if name not in of_chat}


def _is_message(each: object) -> bool:
    return isinstance(each, Mapping) and isinstance(each.get("role"), str) and isinstance(each.get("content"), str)
