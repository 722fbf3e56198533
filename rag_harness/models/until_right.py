"""Requests that a chat model repeats until its reply is usable; each time it is told the fault."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rag_harness.errors import ModelOutputError
from rag_harness.protocols import ChatModel
from rag_harness.types import Message

_T = TypeVar("_T")

TRIES = 3
"""Most times that a model is asked for one result."""
REMEMBERED = 4000
"""Most characters of a reply that are shown to the model again. A runaway reply must not cost more each time."""
EMPTY = "the reply is empty"
_NOTHING = "(nothing)"
"""Text shown to the model for an empty reply. Some servers refuse a message without text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply cannot be used, in words that help the model to correct it."""

    text: str


async def ask_until_right(
    chat: ChatModel,
    messages: Sequence[Message],
    read: Callable[[str], Awaitable[_T | Fault]],
    again: str,
    remembered: int = REMEMBERED,
) -> _T | Fault:
    """Return the result of ``read`` for the first usable reply, or the last fault after ``TRIES``.

    A reply without text is a fault, too. For a retry, the model gets its last reply and ``again``.

    Args:
        chat: the model.
        messages: the request.
        read: returns the result of a reply, or its fault; it may call a model itself.
        again: the message about a fault; it contains ``{fault}``.
        remembered: most characters of a reply that are shown again.

    Raises:
        ModelCallError, DeadlineError, BudgetError, CriticalError: from ``chat.complete``; these are not retried.
    """
    asked, result = list(messages), Fault(EMPTY)
    for _ in range(TRIES):
        said = await _said(chat, asked)
        found = await read(said) if said.strip() else Fault(EMPTY)
        if not isinstance(found, Fault):
            return found
        result = found
        told = Message("user", again.replace("{fault}", found.text))
        asked = [*asked, Message("assistant", said[:remembered] or _NOTHING), told]
    return result


async def _said(chat: ChatModel, messages: Sequence[Message]) -> str:
    try:
        return (await chat.complete(messages)).text
    except ModelOutputError as error:
        return error.raw
