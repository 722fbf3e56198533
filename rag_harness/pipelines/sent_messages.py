"""Messages that were sent are kept while the model thinks, so that nothing but the row is left to write afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from rag_harness.types import Message

Keep = Callable[[Sequence[Message]], object]
_keep: ContextVar[Keep | None] = ContextVar("keep_sent", default=None)


@contextmanager
def keeping_sent(keep: Keep) -> Iterator[None]:
    """Let ``keep`` have the messages of the calls in the block, also in its tasks. It must not raise."""
    token = _keep.set(keep)
    try:
        yield
    finally:
        _keep.reset(token)


@contextmanager
def kept_meanwhile(messages: Sequence[Message]) -> Iterator[None]:
    """Keep ``messages`` if the call in the block waits for its answer. A replayed one does not."""
    keep = _keep.get()
    if keep is None:
        yield
        return
    turn = asyncio.get_running_loop().call_soon(keep, messages)
    try:
        yield
    finally:
        turn.cancel()
