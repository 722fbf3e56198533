"""Listeners for a model's text while the model writes it, for showing an answer as it grows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class CallListener(Protocol):
    """Listens to one call of a chat model, in the thread that reads the answer. It must not raise."""

    def begins(self) -> None:
        """An answer begins. A retry begins again, and the text before it is void."""
        ...

    def hears(self, text: str) -> None:
        """Take the next piece of the model's text, never empty. A recorded answer comes in one piece."""
        ...


listening: ContextVar[CallListener | None] = ContextVar("listening", default=None)
"""The listener of the current calls, or None."""


@contextmanager
def hearing(listener: CallListener) -> Iterator[None]:
    """Let ``listener`` hear the calls of the block, also in its threads and tasks."""
    token = listening.set(listener)
    try:
        yield
    finally:
        listening.reset(token)
