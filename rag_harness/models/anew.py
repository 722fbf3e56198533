"""Seeds of repeats. Each repeat of a trial or judgement has its own seeds, and therefore its own recordings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

seed_shift: ContextVar[int] = ContextVar("seed_shift", default=0)
"""Number added to the seed of every request of the current trial or judgement; 0 for the first time."""


@contextmanager
def asked_again(times: int) -> Iterator[None]:
    """Add ``times`` to the seeds of requests in the block, also in its threads and tasks."""
    token = seed_shift.set(times)
    try:
        yield
    finally:
        seed_shift.reset(token)
