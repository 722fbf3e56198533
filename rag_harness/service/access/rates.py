"""How many requests of a key a server takes in a while: a moving window, kept in memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from time import time
from typing import TYPE_CHECKING

from rag_harness.errors import SettingsError
from rag_harness.service.access.principal import Principal
from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from limits import RateLimitItem


@dataclass(frozen=True, slots=True)
class Standing:
    """What is left of a rate: ``left`` requests, and ``seconds`` until the oldest of the window no longer counts."""

    most: int
    window: int
    left: int
    seconds: int

    def headers(self) -> dict[str, str]:
        """Return what draft-ietf-httpapi-ratelimit-headers-10 wants said of it."""
        return {
            "RateLimit-Policy": f'"key";q={self.most};w={self.window}',
            "RateLimit": f'"key";r={self.left};t={self.seconds}',
        }


class Rates:
    """The rates of one server.

    Args:
        default: of keys that have none of their own, e.g. ``600/minute``; empty is none.
    """

    def __init__(self, default: str) -> None:
        from limits.storage import MemoryStorage
        from limits.strategies import MovingWindowRateLimiter

        self._default = default
        self._windows = MovingWindowRateLimiter(MemoryStorage())

    def count(self, principal: Principal) -> Standing | None:
        """Count a request and return what is left; None where there is no rate, as for a server without keys.

        Raises:
            ProblemError: 429 where it is one too many; it does not count.
        """
        rate = principal.rate or self._default
        if principal.key_id is None or not rate:
            return None
        item, name = parsed(rate), str(principal.key_id)
        taken = self._windows.hit(item, name)
        standing = self._standing(item, name)
        if not taken:
            raise _too_many(rate, standing)
        return standing

    def _standing(self, item: RateLimitItem, name: str) -> Standing:
        stats = self._windows.get_window_stats(item, name)
        seconds = max(1, ceil(stats.reset_time - time()))
        return Standing(item.amount, item.get_expiry(), stats.remaining, seconds)


@lru_cache(maxsize=256)
def parsed(rate: str) -> RateLimitItem:
    """Return a rate that can be counted.

    Raises:
        SettingsError: it cannot be read.
    """
    from limits import parse_many

    try:
        (item,) = parse_many(rate)
    except ValueError:
        item = None
    if item is None or item.amount < 1:
        raise SettingsError(f"{rate!r} is no rate. Write a number and a time: 60/minute, 10/second, 1000/hour.")
    return item


def _too_many(rate: str, standing: Standing) -> ProblemError:
    detail = f"This key may send {rate}. Send the next request in {standing.seconds} s."
    return ProblemError(429, "too_many_requests", detail, {"Retry-After": str(standing.seconds), **standing.headers()})
