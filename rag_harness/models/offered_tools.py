"""Tools that a chat model is offered, in the form of OpenAI's protocol, and the calls that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from rag_harness.types import Message, ToolCall

offered: ContextVar[tuple[Mapping[str, Any], ...]] = ContextVar("offered", default=())
"""The tools of the requests that are made here."""
MOST_CALLS = 32
"""The most calls of one reply that are read."""


@contextmanager
def offering(tools: Sequence[Mapping[str, Any]]) -> Iterator[None]:
    """Offer tools to the chat models that are asked in the block."""
    token = offered.set(tuple(tools))
    try:
        yield
    finally:
        offered.reset(token)


def sent_message(message: Message) -> dict[str, Any]:
    """Return a message as it is sent. Without tools it is role and content."""
    sent: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        sent["tool_calls"] = [
            {"id": each.call_id, "type": "function", "function": {"name": each.name, "arguments": each.arguments}}
            for each in message.tool_calls
        ]
    return {**sent, "tool_call_id": message.call_id} if message.call_id else sent


class HeardCalls:
    """Puts calls together that a stream brings in pieces.

    Attributes:
        length: characters of all arguments so far.
    """

    def __init__(self) -> None:
        self.length: int = 0
        self._found: dict[int, list[str]] = {}

    def add(self, pieces: Any) -> None:
        """Add the pieces of an event. What is no piece of a call is left out, and so are calls beyond the most."""
        for piece in pieces if isinstance(pieces, list) else ():
            place = piece.get("index", 0) if isinstance(piece, dict) else -1
            if isinstance(place, int) and 0 <= place < MOST_CALLS:
                self._add(self._found.setdefault(place, ["", "", ""]), piece)

    def _add(self, call: list[str], piece: Mapping[str, Any]) -> None:
        function = piece.get("function")
        said = function if isinstance(function, dict) else {}
        call[0], call[1] = call[0] or str(piece.get("id") or ""), call[1] or str(said.get("name") or "")
        call[2] += (more := str(said.get("arguments") or ""))
        self.length += len(more)

    def calls(self) -> tuple[ToolCall, ...]:
        """Return the calls in their order."""
        return tuple(ToolCall(*self._found[place]) for place in sorted(self._found))
