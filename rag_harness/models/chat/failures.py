"""Failures of a chat endpoint: which are temporary, how long to wait, and errors with status 200."""

from __future__ import annotations

import random
from collections.abc import Mapping
from contextlib import suppress
from datetime import timezone
from email.utils import parsedate_to_datetime
from math import isfinite
from time import time
from typing import TYPE_CHECKING, Any

from rag_harness.errors import CriticalError
from rag_harness.files.json_text import read_json
from rag_harness.models.call_rates import LONGEST_WAIT

if TYPE_CHECKING:
    from openai import APIError

    from rag_harness.protocols import KeyOwner

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
    """Return the seconds that a server asks to wait, told as a number or as a date (RFC 9110); None without either."""
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
