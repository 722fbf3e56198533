"""Summaries of sections, written by a chat model of role ``writer`` before the first question; ``t5`` searches them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.files.sources import json_digest
from rag_harness.models.prompts import Prompts
from rag_harness.protocols import ChatModel
from rag_harness.retrieval.chunking.summaries import summary_of
from rag_harness.studies.textbook.book_places import book_place_of
from rag_harness.types import Chunk, Decision, Hit, Message

PROMPTS = "t5.summary"
EMPTY, TOO_LONG = "empty", "longer than the section"
INSTEAD_OF = "summary_instead_of"
"""In the metadata of an extractive summary: what came back from the model."""


@dataclass(frozen=True)
class Writer:
    """Asks a model for a summary of each section, many at once.

    Args:
        chat: the model.
        prompts: its templates; ``{question}`` is the section's place, ``{context}`` its text.
        at_once: the most calls in flight; the run's limiter may allow fewer.
        run: waits for the calls.
        decides: everything else that decides what the model says, as plain JSON.
    """

    chat: ChatModel
    prompts: Prompts
    at_once: int
    run: Callable[[Coroutine[Any, Any, list[str]]], list[str]]
    decides: Sequence[Any] = ()

    def rewritten(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """Return sections with their summaries as texts.

        Raises:
            RagHarnessError: a call failed for good; calls under way are given up.
        """
        return [_summary(*pair) for pair in zip(chunks, self.run(self._all(chunks)), strict=True)]

    @property
    def identity(self) -> list[Any]:
        """Everything that decides the summaries: the model's settings, and the digest of the prompts."""
        return [*self.decides, json_digest([self.prompts.system, self.prompts.user])]

    async def _all(self, sections: Sequence[Chunk]) -> list[str]:
        turns = asyncio.Semaphore(self.at_once)
        calls = [asyncio.ensure_future(self._one(section, turns)) for section in sections]
        try:
            return await asyncio.gather(*calls)
        finally:
            for call in calls:
                call.cancel()

    async def _one(self, section: Chunk, turns: asyncio.Semaphore) -> str:
        async with turns:
            try:
                return (await self.chat.complete(self._messages(section))).text.strip()
            except ModelOutputError:
                return ""

    def _messages(self, section: Chunk) -> list[Message]:
        return self.prompts.messages(" > ".join(book_place_of(section).path), [Hit(section, 0.0, 1)])


def written_by(model: str, summaries: Sequence[Chunk]) -> Decision:
    """Return who wrote the summaries. The value counts the sections that keep their first sentences instead."""
    why = Counter(summary.metadata.get(INSTEAD_OF, "") for summary in summaries)
    instead = [f"{why[fault]} {fault}" for fault in (EMPTY, TOO_LONG) if why[fault]]
    reason = f"{why['']} of {len(summaries)} sections"
    reason += f"; extractive in place of what came back {', '.join(instead)}" if instead else ""
    return Decision("summaries", f"written by {model}", float(len(summaries) - why[""]), None, reason)


def _summary(section: Chunk, said: str) -> Chunk:
    """Return a section with its summary, after its headings, as the extractive summaries have them.

    A summary that is empty or longer than its section is replaced by the extractive one; the metadata say so.
    """
    fault = _fault(section, said)
    if fault:
        return replace(section, text=summary_of(section), metadata={**section.metadata, INSTEAD_OF: fault})
    return replace(section, text=": ".join(filter(None, [" > ".join(section.section), said])))


def _fault(section: Chunk, said: str) -> str:
    if not said:
        return EMPTY
    return TOO_LONG if len(said) > len(section.text) else ""
