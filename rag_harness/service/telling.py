"""The events before an answer is complete: its sources, and its words as the model writes them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rag_harness.models.heard import CallListener
from rag_harness.service.citing import section_of
from rag_harness.service.streamed_answer import AnswerInJson, PlainText
from rag_harness.types import Hit

Name = Literal["retrieval", "token", "replace", "citation", "verdict", "done", "error"]


@dataclass(frozen=True, slots=True)
class AnswerEvent:
    """One event for a client; ``data`` is plain JSON."""

    name: Name
    data: Mapping[str, Any]


def retrieval(context: Sequence[Hit]) -> AnswerEvent:
    """Return the event with the sources of an answer, in the order of their numbers."""
    return AnswerEvent("retrieval", {"sources": [_source(n, hit) for n, hit in enumerate(context, 1)]})


def _source(n: int, hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    page = chunk.pages[0] if chunk.pages else None
    where = {"document": chunk.doc_id, "section": section_of(chunk), "page": page}
    return {"source": n, **where, "score": hit.score, "text": chunk.text}


class Telling:
    """Watches one pipeline answer, from any thread, and makes events for the loop on which it was made.

    Args:
        holds: whether to send no word of the answer.
    """

    def __init__(self, holds: bool) -> None:
        self._holds = holds
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._events: asyncio.Queue[AnswerEvent | None] = asyncio.Queue()
        self._words: list[str] = []
        self._reading: type[AnswerInJson | PlainText] = PlainText
        self._reader: AnswerInJson | PlainText = PlainText()
        self.context: tuple[Hit, ...] | None = None

    @property
    def words(self) -> str:
        """The words that were sent and not withdrawn."""
        return "".join(self._words)

    async def next(self) -> AnswerEvent | None:
        """Return the next event; None if no more will come."""
        return await self._events.get()

    def close(self) -> None:
        """Note that no more events will come."""
        self._put(None)

    def answering(self, context: Sequence[Hit], in_json: bool) -> CallListener:
        """Take the sources of the answer. The same sources are sent only once."""
        if tuple(context) != self.context:
            self.context = tuple(context)
            self._put(retrieval(context))
        self._reading = AnswerInJson if in_json else PlainText
        return self

    def begins(self) -> None:
        """Withdraw the words of a call that broke off, or of an earlier call."""
        self._reader = self._reading()
        if self._words:
            self._words.clear()
            self._put(AnswerEvent("replace", {"answer": ""}))

    def hears(self, text: str) -> None:
        """Send the new words of the answer."""
        said = "" if self._holds else self._reader.feed(text)
        if said:
            self._words.append(said)
            self._put(AnswerEvent("token", {"text": said}))

    def _put(self, event: AnswerEvent | None) -> None:
        if threading.get_ident() == self._thread:
            self._events.put_nowait(event)
        else:
            self._loop.call_soon_threadsafe(self._events.put_nowait, event)
