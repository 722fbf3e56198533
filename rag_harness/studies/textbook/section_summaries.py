"""Summaries of sections, written by a chat model of role ``writer`` before the first question; ``t5`` searches them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from rag_harness.errors import ModelOutputError, RagHarnessError
from rag_harness.files.sources import json_digest
from rag_harness.models.prompts import Prompts
from rag_harness.protocols import ChatModel
from rag_harness.retrieval.building import building_alone
from rag_harness.retrieval.chunking.summaries import summary_of
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.studies.textbook.book_places import book_place_of
from rag_harness.types import Chunk, Decision, Hit, Message

PROMPTS = "t5.summary"
EMPTY, TOO_LONG = "empty", "longer than the section"


@dataclass(frozen=True)
class Writer:
    """Asks a model for a summary of each section, many at once.

    Args:
        chat: the model.
        prompts: its templates; ``{question}`` is the section's place, ``{context}`` its text.
        at_once: the most calls in flight; the run's limiter may allow fewer.
        run: waits for the calls.
    """

    chat: ChatModel
    prompts: Prompts
    at_once: int
    run: Callable[[Coroutine[Any, Any, list[str]]], list[str]]

    def written(self, sections: Sequence[Chunk]) -> list[str]:
        """Return the model's text for each section; empty if the model said nothing.

        Raises:
            RagHarnessError: a call failed for good; calls under way are given up.
        """
        return self.run(self._all(sections))

    @property
    def identity(self) -> str:
        """The digest of the writer's prompts."""
        return json_digest([self.prompts.system, self.prompts.user])

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


class WrittenSummaries(Retrieval):
    """The sections of ``sections``, represented by summaries of ``writer``. Each has its section's id.

    A summary that is empty or longer than its section is replaced by the extractive summary.
    """

    def __init__(self, sections: Retrieval, writer: Writer) -> None:
        spec = replace(sections.spec, chunker="summaries")
        super().__init__(spec, lambda: (), sections.settings, sections.stores, sections.embedder)
        self._sections, self._writer = sections, writer
        self._failed: RagHarnessError | None = None

    def prepare(self, queries: Sequence[str]) -> None:
        """Get the summaries written, and prepare for ``queries``. Other processes then find the recordings."""
        with building_alone(self.settings):
            _ = self.chunks
        super().prepare(queries)

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The summaries, in the order of the sections."""
        pairs = zip(self._sections.chunks, self._written, strict=True)
        return [replace(section, text=_text(section, said)) for section, said in pairs]

    @cached_property
    def _written(self) -> list[str]:
        if self._failed is not None:  # the first trial has asked for all of them; another would pay for them again
            raise self._failed
        try:
            return self._writer.written(self._sections.chunks)
        except RagHarnessError as error:
            self._failed = error
            raise

    def decided(self) -> Decision:
        """Return who wrote the summaries. The value counts the sections that keep their first sentences instead."""
        sections = self._sections.chunks
        why = Counter(_fault(*pair) for pair in zip(sections, self._written, strict=True))
        instead = [f"{why[fault]} {fault}" for fault in (EMPTY, TOO_LONG) if why[fault]]
        reason = f"{why['']} of {len(sections)} sections"
        reason += f"; extractive in place of what came back {', '.join(instead)}" if instead else ""
        return Decision(
            "summaries", f"written by {self._writer.chat.model}", float(len(sections) - why[""]), None, reason
        )


def _fault(section: Chunk, said: str) -> str:
    if not said:
        return EMPTY
    return TOO_LONG if len(said) > len(section.text) else ""


def _text(section: Chunk, said: str) -> str:
    """Return a summary after the headings of its section, as the extractive summaries have them."""
    if _fault(section, said):
        return summary_of(section)
    return ": ".join(filter(None, [" > ".join(section.section), said]))
