"""The state of one call of a chat model: its limits and its usage."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

from rag_harness.models.call_rates import Turn
from rag_harness.types import Usage

IS_OVER = "rag_is_over"
"""The key of a response's extensions that says whether all of it has come and was read."""
CALL = "rag_call"
"""Key of the ``Call`` in the extensions of a response."""
_BYTES_A_TOKEN = 3
_TOKENS_A_MESSAGE = 16
NO_USAGE = Usage()
"""Usage of a call that was refused or never reached the server."""


class Call:
    """One call in flight: its limits and its usage."""

    def __init__(self, most: Usage, cost: Callable[[Usage], float]) -> None:
        self.most: Usage = most
        self._cost = cost
        self.used: Usage | None = None
        self.asked: float = perf_counter()
        self.started: float = self.asked
        self.turn: Turn | None = None

    @property
    def waited_ms(self) -> float:
        """Milliseconds of waiting before the request was sent."""
        return (self.started - self.asked) * 1000

    @property
    def highest_cost(self) -> float:
        """USD to reserve for the call."""
        return self._cost(self.most)

    @property
    def cost(self) -> float:
        """USD of the call; the highest cost while the usage is unknown."""
        return self._cost(self.most if self.used is None else self.used)

    def settle(self, usage: Usage) -> None:
        """Set the usage of the call, before its response is closed."""
        self.used = usage


def upper_bound(content: bytes, asked: Mapping[str, Any]) -> Usage:
    """Return the most tokens that a request can use, without its model's tokenizer.

    It counts 3 bytes of UTF-8 for a token. English has 4 to 5; other scripts about one character of 2 or 3 bytes.
    """
    prompt = len(content) // _BYTES_A_TOKEN + _TOKENS_A_MESSAGE * (1 + len(asked.get("messages", ())))
    return Usage(prompt, int(asked.get("max_tokens") or asked.get("max_completion_tokens") or 0), calls=1)


def tokens(usage: Usage) -> float:
    """Return the total of tokens, as caps per minute count them."""
    return usage.prompt_tokens + usage.completion_tokens
