"""The cost of judging a row: tokens and calls of the judge's model. They count for the row that asked first."""

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
    """Tokens and calls of one row's judging; ``recorded`` is the number of replayed calls."""

    usage: Usage = Usage()
    recorded: int = 0

    def add(self, completion: Completion) -> None:
        """Count a reply."""
        self.usage += completion.usage
        self.recorded += completion.recorded


_counting: ContextVar[Spent | None] = ContextVar("rag_judge_spent", default=None)


@contextmanager
def spending() -> Iterator[Spent]:
    """Count the calls inside the block, also those of tasks that it starts."""
    spent = Spent()
    token = _counting.set(spent)
    try:
        yield spent
    finally:
        _counting.reset(token)


def count_elsewhere(spent: Spent) -> None:
    """Count the calls of another process, in the block around this call."""
    here = _counting.get()
    if here is not None:
        here.usage += spent.usage
        here.recorded += spent.recorded


class CountedParts:
    """The parts of a run with chat models that count their calls."""

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
