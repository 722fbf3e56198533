"""Work that takes long and is no trial: whoever does it reports how far it is, whoever wants to know listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Listener(Protocol):
    """Hears of work, in the thread that does it."""

    def __call__(self, what: str, done: int, total: int, unit: str) -> None:
        """``done`` of ``total`` are done; the work is over where they are equal."""
        ...


_listeners: tuple[Listener, ...] = ()


def report(what: str, done: int, total: int, unit: str = "") -> None:
    """Say that ``done`` of ``total`` are done of ``what``, e.g. ``report("embedding", 512, 1830, "chunks")``.

    Say it first with 0 and last with ``total``. Costs nothing where nobody listens.
    """
    # A tuple that is replaced, never changed: a listener may come or go in another thread meanwhile.
    for listener in _listeners:
        listener(what, done, total, unit)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear of all work in this process for as long as the block lasts."""
    global _listeners  # noqa: PLW0603 - one process, one set of listeners, as with logging
    _listeners = (*_listeners, listener)
    try:
        yield
    finally:
        _listeners = tuple(known for known in _listeners if known is not listener)
