"""How a trial is asked beyond its query: seeds of repeats, and sessions of services that keep conversations.

Each repeat of a trial or judgement has its own seeds, and therefore its own recordings.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, TypeAlias

seed_shift: ContextVar[int] = ContextVar("seed_shift", default=0)
"""Number added to the seed of every request of the current trial or judgement; 0 for the first time."""


Session: TypeAlias = Literal["", "anew", "earlier"]
"""The session of a turn: begun in this run, to be begun anew without recordings, or begun by an earlier run."""
session_of_turn: ContextVar[Session] = ContextVar("session_of_turn", default="")
"""The session of the turn that is asked now."""

_before_sending: ContextVar[Callable[[], Awaitable[None]] | None] = ContextVar("before_sending", default=None)


@contextmanager
def asked_again(times: int) -> Iterator[None]:
    """Add ``times`` to the seeds of requests in the block, also in its threads and tasks."""
    token = seed_shift.set(times)
    try:
        yield
    finally:
        seed_shift.reset(token)


@contextmanager
def asked_in(session: Session) -> Iterator[None]:
    """Ask a turn in such a session in the block, also in its threads and tasks."""
    token = session_of_turn.set(session)
    try:
        yield
    finally:
        session_of_turn.reset(token)


@contextmanager
def noting_what_is_sent(note: Callable[[], Awaitable[None]]) -> Iterator[None]:
    """Await ``note`` before a question of the block is sent to a service, also in its tasks."""
    token = _before_sending.set(note)
    try:
        yield
    finally:
        _before_sending.reset(token)


async def note_what_is_sent() -> None:
    """Note that a question is sent now: it has waited for its turn, and the budget allows it."""
    note = _before_sending.get()
    if note is not None:
        await note()
