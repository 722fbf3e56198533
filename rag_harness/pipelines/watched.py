"""Watching a pipeline answer: what it answers from, once that is settled, and then the answer as it comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from rag_harness.models.heard import Listener, hearing
from rag_harness.types import Hit

_SHOWN = ("generate", "answer")
"""Stage and role of the calls whose words are the answer: a second opinion, a judge and a rewriter speak to nobody."""


class Watcher(Protocol):
    """Whoever shows how an answer is made."""

    def answering(self, context: Sequence[Hit], in_json: bool) -> Listener:
        """The answer is about to be written from ``context``, in prompt order; return who hears the model write it.

        ``in_json`` says that the answer was asked for in JSON, as the value of "answer".
        """
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Let ``watcher`` see the pipeline that runs in the block; threads and tasks that it starts inherit that."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def shown(stage: str, role: str, context: Sequence[Hit], in_json: bool) -> AbstractContextManager[None]:
    """Return what a call of ``stage`` is made in: heard by the watcher, where there is one and it is the answer."""
    watcher = _watcher.get()
    if watcher is None or (stage, role) != _SHOWN:
        return nullcontext()
    return hearing(watcher.answering(tuple(context), in_json))
