"""Rate limits of clients: requests in a time, and the refusal of one too many."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from threading import Lock
from time import monotonic

from rag_harness.core.errors import SettingsError
from rag_harness.service.keys import Principal
from rag_harness.service.problems import ProblemError

_RATE = re.compile(r"([0-9]{1,9}) ?(?:/|per) ?([0-9]{1,9})? ?(second|minute|hour|day|month|year)s?", re.IGNORECASE)
_DAY = 86_400
_SECONDS = {"second": 1, "minute": 60, "hour": 3_600, "day": _DAY, "month": 30 * _DAY, "year": 360 * _DAY}


@dataclass(frozen=True, slots=True)
class Rate:
    """``most`` requests in a moving window of ``window`` seconds."""

    most: int
    window: int


@dataclass(frozen=True, slots=True)
class RateLeft:
    """What is left of a rate: ``left`` requests, and ``seconds`` until the oldest in the window stops counting."""

    most: int
    window: int
    left: int
    seconds: int

    def headers(self) -> dict[str, str]:
        """Return the headers that draft-ietf-httpapi-ratelimit-headers-10 defines."""
        return {
            "RateLimit-Policy": f'"key";q={self.most};w={self.window}',
            "RateLimit": f'"key";r={self.left};t={self.seconds}',
        }


class Rates:
    """The request rates of one server.

    Rates use the monotonic clock. If the machine's clock were used and set back an hour, a key would be locked out for
    that hour.

    Args:
        default: the rate of keys without their own, e.g. ``600/minute``; empty means unlimited.
        now: the clock, in seconds.
    """

    def __init__(self, default: str, now: Callable[[], float] = monotonic) -> None:
        self._default, self._now = default, now
        self._taken: defaultdict[int, list[float]] = defaultdict(list)
        self._lock = Lock()

    def count(self, principal: Principal) -> RateLeft | None:
        """Count a request and return what is left; None without a rate, as on a server without keys.

        Raises:
            ProblemError: 429 if the rate is exceeded; the request does not count then.
        """
        rate = principal.rate or self._default
        if principal.key_id is None or not rate:
            return None
        parsed = parsed_rate(rate)
        with self._lock:
            now, taken = self._now(), self._taken[principal.key_id]
            del taken[: bisect_right(taken, now - parsed.window)]
            fits = len(taken) < parsed.most
            if fits:
                taken.append(now)
            standing = _standing(parsed, taken, now)
        if not fits:
            raise _too_many(rate, standing)
        return standing


def _standing(rate: Rate, taken: Sequence[float], now: float) -> RateLeft:
    seconds = max(1, ceil(taken[0] + rate.window - now))
    return RateLeft(rate.most, rate.window, max(0, rate.most - len(taken)), seconds)


@lru_cache(maxsize=256)
def parsed_rate(rate: str) -> Rate:
    """Return a rate of words such as ``60/minute`` or ``5 per 10 seconds``.

    Raises:
        SettingsError: the rate cannot be read.
    """
    found = _RATE.fullmatch(" ".join(rate.split()))
    if found is None or int(found[1]) < 1 or found[2] == "0":
        raise SettingsError(f"{rate!r} is not a rate. Write a number and a time: 60/minute, 10/second, 1000/hour.")
    return Rate(int(found[1]), int(found[2] or 1) * _SECONDS[found[3].lower()])


def _too_many(rate: str, standing: RateLeft) -> ProblemError:
    detail = f"This key may send {rate}. Send the next request in {standing.seconds} s."
    return ProblemError(429, "too_many_requests", detail, {"Retry-After": str(standing.seconds), **standing.headers()})
