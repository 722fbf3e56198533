"""What judging a row asked of the judge's model: counted where the answer comes back, for whichever row asked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rag_harness.protocols import ChatModel, JudgeParts, TextEmbedder
from rag_harness.settings import Settings
from rag_harness.types import Completion, Message, Usage


@dataclass
class Spent:
    """Tokens and calls of one row's judging; ``recorded`` is how many of the calls were replayed."""

    usage: Usage = Usage()
    recorded: int = 0

    def add(self, completion: Completion) -> None:
        """Count an answer."""
        self.usage += completion.usage
        self.recorded += completion.recorded


_counting: ContextVar[Spent | None] = ContextVar("rag_judge_spent", default=None)


@contextmanager
def spending() -> Iterator[Spent]:
    """Count what is asked in the block, in the tasks that it begins too."""
    spent = Spent()
    token = _counting.set(spent)
    try:
        yield spent
    finally:
        _counting.reset(token)


def count_elsewhere(spent: Spent) -> None:
    """Count what another process was asked, in the block that this one is in."""
    here = _counting.get()
    if here is not None:
        here.usage += spent.usage
        here.recorded += spent.recorded


class CountedParts:
    """The parts of a run, whose chat models count what they are asked."""

    def __init__(self, parts: JudgeParts) -> None:
        self._parts = parts

    @property
    def settings(self) -> Settings:
        return self._parts.settings

    @property
    def stores(self) -> Any:
        return self._parts.stores

    @property
    def cassettes(self) -> Any:
        return self._parts.cassettes

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
    ) -> ChatModel:
        return _CountedChat(self._parts.chat(role, temperature=temperature, max_output_tokens=max_output_tokens))

    def embedder(self, model: str = "") -> TextEmbedder:
        return self._parts.embedder(model)


class _CountedChat:
    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        return self._inner.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        completion = await self._inner.complete(messages, response_format)
        spent = _counting.get()
        if spent is not None:
            spent.add(completion)
        return completion
