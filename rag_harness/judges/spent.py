"""The cost of judging a row: tokens and calls of the judge's model. They count for the row that asked first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.judges.parts_around import PartsAround
from rag_harness.protocols import ChatModel
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


class CountedParts(PartsAround):
    """The parts of a run, whose chat models count what they are asked."""

    def around(self, model: ChatModel) -> ChatModel:
        return _CountedChat(model)


class _CountedChat:
    def __init__(self, inner: ChatModel) -> None:
        self._inner = inner

    @property
    def model(self) -> str:
        return self._inner.model

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        try:
            completion = await self._inner.complete(messages, response_format)
        except ModelOutputError as error:
            _count(error.said)
            raise
        _count(completion)
        return completion


def _count(completion: Completion | None) -> None:
    spent = _counting.get()
    if spent is not None and completion is not None:
        spent.add(completion)
