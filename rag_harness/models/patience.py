"""How often a failing model is retried: often in a run, seldom when a person waits at a screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from rag_harness.models.call_rates import LONGEST_WAIT


@dataclass(frozen=True, slots=True)
class Patience:
    """The number of ``retries``. A server that asks to wait longer than ``longest`` seconds is given up."""

    retries: int = 3
    longest: float = LONGEST_WAIT


OF_SOMEBODY = Patience(1, 5.0)
"""One retry after a second. It helps against a broken connection, and a person need not wait 7 s for a dead server."""
patience: ContextVar[Patience] = ContextVar("patience", default=Patience())  # noqa: B039 - it is frozen
"""The patience of the current caller."""


@contextmanager
def somebody_waits() -> Iterator[None]:
    """Use short retries in the block, because a person waits for the answer. Its tasks inherit that."""
    token = patience.set(OF_SOMEBODY)
    try:
        yield
    finally:
        patience.reset(token)
