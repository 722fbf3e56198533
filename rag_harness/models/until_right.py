"""Asking a chat model for what can be used, and again with what was wrong with its reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from rag_harness.errors import ModelOutputError
from rag_harness.protocols import ChatModel
from rag_harness.types import Message

T = TypeVar("T")

TRIES = 3
"""Times that a model is asked for one thing."""
REMEMBERED = 4000
"""Characters of a reply that the model is shown again: one that ran wild must not cost more each time."""
EMPTY = "the reply is empty"
_NOTHING = "(nothing)"
"""Stands for an empty reply where the model sees it: some servers refuse a message without text."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a reply cannot be used, in words that a model can mend it by."""

    text: str


async def ask_until_right(
    chat: ChatModel,
    messages: Sequence[Message],
    read: Callable[[str], Awaitable[T | Fault]],
    again: str,
    remembered: int = REMEMBERED,
) -> T | Fault:
    """Return what ``read`` makes of the first reply that it finds no fault with, or the last fault after ``TRIES``.

    A reply without text is a fault like another. Each time the model sees what it said last and ``again``.

    Args:
        chat: the model.
        messages: what it is asked.
        read: makes of a reply what is wanted, or says why that cannot be; may ask a model itself.
        again: what the model is told of a fault, with ``{fault}`` in it.
        remembered: characters of a reply that it is shown again.

    Raises:
        ModelCallError, DeadlineError, BudgetError, CriticalError: as ``chat.complete`` does; nothing is asked again.
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
