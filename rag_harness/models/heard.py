"""Hearing what a model says while it says it: whoever shows an answer as it grows need not wait for its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Listener(Protocol):
    """Hears one call of a chat model; it must not raise, and is told in the thread that reads the answer."""

    def begins(self) -> None:
        """An answer begins. Told again where a call is made again: what was heard before counts no more."""
        ...

    def hears(self, text: str) -> None:
        """The next piece of the answer as the model wrote it; never empty. A recorded answer comes at once."""
        ...


listening: ContextVar[Listener | None] = ContextVar("listening", default=None)
"""Who hears the calls that are made now; None is nobody."""


@contextmanager
def hearing(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear the calls of the block; threads and tasks that it starts inherit that."""
    token = listening.set(listener)
    try:
        yield
    finally:
        listening.reset(token)
