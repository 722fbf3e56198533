"""The probabilities of the first word of a reply. Chat models that can state them do so where they are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

alternatives: ContextVar[int] = ContextVar("alternatives", default=0)
"""How many tokens are wanted with their log-probabilities, for each token of the reply; 0 for none."""
MOST_ALTERNATIVES = 20
"""The most that the API of OpenAI gives."""


@contextmanager
def with_alternatives() -> Iterator[None]:
    """Ask for the log-probabilities of tokens in the block, also in its tasks."""
    token = alternatives.set(MOST_ALTERNATIVES)
    try:
        yield
    finally:
        alternatives.reset(token)
