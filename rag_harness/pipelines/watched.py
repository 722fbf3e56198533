"""Live view of a pipeline: first the context of the answer, then the answer while the model writes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from rag_harness.models.heard import CallListener, hearing
from rag_harness.types import Hit

_SHOWN = ("generate", "answer")
"""Stage and role of the calls that write the answer. Calls of a judge or a rewriter are not shown."""


class Watcher(Protocol):
    """Shows an answer while it is made."""

    def answering(self, context: Sequence[Hit], in_json: bool) -> CallListener:
        """Take the context of the answer, in prompt order; return the listener for the model's text.

        ``in_json`` says that the model writes JSON, with the answer as the value of "answer".
        """
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Show the pipeline that runs in the block to ``watcher``, also in its threads and tasks."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watched_call(stage: str, role: str, context: Sequence[Hit], in_json: bool) -> AbstractContextManager[None]:
    """Return the context manager for a call of ``stage``. In it, the watcher hears a call that writes the answer."""
    watcher = _watcher.get()
    if watcher is None or (stage, role) != _SHOWN:
        return nullcontext()
    return hearing(watcher.answering(tuple(context), in_json))
