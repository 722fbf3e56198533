"""How long a failing model is tried again: a run has time, somebody who looks at a screen has none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from rag_harness.models.limits import LONGEST_WAIT


@dataclass(frozen=True, slots=True)
class Patience:
    """``retries`` after the first try; a server that asks to wait longer than ``longest`` seconds is not waited for."""

    retries: int = 3
    longest: float = LONGEST_WAIT


OF_SOMEBODY = Patience(1, 5.0)
"""One more try, a second later: enough where a connection broke, and nobody waits 7 s for what is down."""
patience: ContextVar[Patience] = ContextVar("patience", default=Patience())  # noqa: B039 - it is frozen
"""Of whoever asks."""


@contextmanager
def somebody_waits() -> Iterator[None]:
    """Try again as somebody wants it who waits for the answer; tasks that the block starts inherit that."""
    token = patience.set(OF_SOMEBODY)
    try:
        yield
    finally:
        patience.reset(token)
