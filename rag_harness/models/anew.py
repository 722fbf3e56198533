"""Asking a question again: each repeat of a trial or judgement has seeds of its own, and so recordings of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

seed_shift: ContextVar[int] = ContextVar("seed_shift", default=0)
"""What is added to the seed of every request of the trial or judgement under way; 0 the first time."""


@contextmanager
def asked_again(times: int) -> Iterator[None]:
    """Add ``times`` to the seeds of what is asked in the block; threads and tasks that it starts inherit that."""
    token = seed_shift.set(times)
    try:
        yield
    finally:
        seed_shift.reset(token)
