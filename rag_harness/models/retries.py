"""Retries after temporary failures: which failures pass, how long to wait, and how often to retry."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timezone
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.core.deadline import Deadline
from rag_harness.core.errors import CriticalError, ModelCallError
from rag_harness.core.json_text import read_json
from rag_harness.models.throttling import LONGEST_WAIT

if TYPE_CHECKING:
    from openai import APIError

    from rag_harness.core.protocols import KeyOwner


# How often a failing model is retried: often in a run, seldom when a person waits at a screen.


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The number of ``retries``. A server that asks to wait longer than ``longest`` seconds is given up."""

    retries: int = 3
    longest: float = LONGEST_WAIT


OF_SOMEBODY = RetryPolicy(1, 5.0)
"""One retry after a second. It helps against a broken connection, and a person need not wait 7 s for a dead server."""
patience: ContextVar[RetryPolicy] = ContextVar("patience", default=RetryPolicy())  # noqa: B039 - it is frozen
"""The patience of the current caller."""


@contextmanager
def somebody_waits() -> Iterator[None]:
    """Use short retries in the block, because a person waits for the answer. Its tasks inherit that."""
    token = patience.set(OF_SOMEBODY)
    try:
        yield
    finally:
        patience.reset(token)


_HALTING = {"401", "402", "403", "404", "model_not_found", "invalid_api_key", "insufficient_quota"}
"""A rejected key, no credit, no permission, no such model. No later call can succeed."""
_NO_SUCH_MODEL = "not a valid model"
"""OpenRouter's message for an unknown model, with status 400."""
_UNAUTHORISED, _FORBIDDEN = 401, 403
_FIRST_WAIT = 1.0
_PASSING = {408, 409, 425, 429}
"""Statuses to retry. 5xx and errors without a status are retried, too."""


class PassingError(Exception):
    """A temporary failure: a timeout, a broken connection, 429, 5xx, an error in the middle of a stream."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause

    def pause(self, retry: int) -> float:
        response = getattr(self.cause, "response", None)
        asked = retry_after(response.headers) if response is not None else None
        return asked if asked is not None else _FIRST_WAIT * 2**retry * random.uniform(0.75, 1.25)

    def explain(self, retry: int, pause: float, longest: float = LONGEST_WAIT) -> str:
        # The SDK says no more than "Connection error."; what is below it names the address, and why.
        below = self.cause.__cause__ if type(self.cause).__name__ == "APIConnectionError" else None
        what = f"{type(self.cause).__name__}: {below or self.cause}".rstrip(".")
        if pause > longest:
            return f"{what}. The server asks to wait {pause:.0f} s, longer than the {longest:.0f} s we wait."
        return f"{what}. Gave up after {retry + 1} tries."


def forbidden(error: APIError) -> bool:
    """Return whether a refusal may be about the key, or about what one question says: moderation answers 403, too."""
    return getattr(error, "status_code", None) == _FORBIDDEN


def may_pass(error: APIError) -> bool:
    """Return whether a retry can succeed."""
    status = getattr(error, "status_code", 500)
    return status in _PASSING or status >= 500


def hopeless(error: APIError, model: str, url: str, key: KeyOwner) -> CriticalError | None:
    """Return the error that ends the run where no later call can succeed; None where one may."""
    status = getattr(error, "status_code", None)
    if status == _UNAUTHORISED:
        return CriticalError(key_refused(url, key))
    if {str(status), str(error.code)} & _HALTING or _NO_SUCH_MODEL in error.message:
        return CriticalError(
            f"The chat endpoint {url} refused {model!r} with {status or error.code}: "
            f"{error.message} Check the model's name, the key and its credit."
        )
    return None


def key_refused(url: str, key: KeyOwner) -> str:
    """Return a sentence about a server that answered 401: whose call it was, where, and which variable has the key."""
    why = f"it refuses the key of {key.variable}" if key.is_set else f"it wants a key, and {key.variable} is not set"
    return f"The server of role {key.role} at {url} answers 401: {why}."


async def reply_in_json(response: Any) -> Mapping[str, Any] | None:
    """Return the whole completion of a server that does not stream; None for a stream.

    Raises:
        APIError: the server sent an error with status 200. As a stream, it would only have no events.
    """
    if "json" not in response.headers.get("content-type", ""):
        return None
    said = (await response.aread()).decode(errors="replace")
    error: Any = {"message": f"a stream was asked for, and the server sent {said[:200]!r}"}
    with suppress(ValueError):
        found = read_json(said)
        if isinstance(found, dict) and found.get("choices") and not found.get("error"):
            return found
        error = (isinstance(found, dict) and found.get("error")) or error
    body = error if isinstance(error, dict) else {"message": str(error)}
    raise sdk_error(str(body.get("message")), response, body)


def sdk_error(message: str, response: Any, body: Any) -> APIError:
    """Return the SDK's error for a failure that a server sent with status 200."""
    from openai import APIError

    return APIError(message, response.request, body=body)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, as a number or by a date (RFC 9110); None without either."""
    said = headers.get("retry-after", "")
    try:
        seconds = float(said)
    except ValueError:
        try:
            asked = parsedate_to_datetime(said)
        except ValueError:
            return None
        seconds = (asked if asked.tzinfo else asked.replace(tzinfo=timezone.utc)).timestamp() - time()
        if seconds < 0:
            return None  # one of the clocks is wrong
    return max(0.0, seconds) if isfinite(seconds) else None


def stated_cost(headers: Mapping[str, str]) -> float | None:
    """Return the USD of a call as a gateway (LiteLLM) states them in a header; None where none does."""
    try:
        usd = float(headers.get("x-litellm-response-cost", ""))
    except ValueError:
        return None
    return usd if isfinite(usd) and usd >= 0 else None


def transport_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a stream that breaks off: errors of the transport, and incomplete JSON."""
    from httpx2 import HTTPError

    return HTTPError, ValueError, ConnectionError


_T = TypeVar("_T")


@dataclass
class RetriesNoted:
    """The retries of all calls of a trial so far, and the milliseconds of waiting before them.

    An error that ends a trial in the middle of a call, such as a deadline, does not know them.
    """

    retries: int = 0
    waited_ms: float = 0.0


trial_retries: ContextVar[RetriesNoted] = ContextVar("trial_retries", default=RetriesNoted())  # noqa: B039
"""Of the trial under way. Its tasks share the object; calls outside of trials are noted where nobody looks."""


async def retried(
    once: Callable[[Deadline], Awaitable[_T]],
    deadline: Callable[[], Deadline],
    given_up: Callable[[PassingError, str], Exception],
    wait: Callable[[float], Awaitable[object]],
) -> tuple[_T, int, float]:
    """Return the result of ``once``, the number of retries, and the milliseconds of waiting, between tries included.

    Args:
        once: makes the call within its deadline; raises PassingError where a retry may succeed.
        deadline: makes the deadline of one try.
        given_up: makes the final error from the last failure and a message.
        wait: sleeps for some seconds.
    """
    waited, asked = 0.0, patience.get()
    for retry in range(asked.retries + 1):
        time = deadline()
        try:
            return await once(time), retry, (waited + time.waited) * 1000
        except PassingError as failure:
            pause = failure.pause(retry)
            if retry == asked.retries or pause > asked.longest:
                error = given_up(failure, failure.explain(retry, pause, asked.longest))
                if isinstance(error, ModelCallError):
                    error.retries, error.waited_ms = retry, (waited + time.waited) * 1000
                raise error from failure.cause
        waited += time.waited + pause
        await wait(pause)
        noted = trial_retries.get()
        noted.retries, noted.waited_ms = noted.retries + 1, noted.waited_ms + (time.waited + pause) * 1000
    raise AssertionError("unreachable")
