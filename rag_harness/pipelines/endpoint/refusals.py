"""Errors for HTTP statuses that are no success: temporary, for this call, or for all calls."""

from __future__ import annotations

from typing import Any

from rag_harness.errors import CriticalError, ModelCallError, ModelOutputError
from rag_harness.models.chat.failures import PassingError
from rag_harness.models.recording.scrubbing import forms_of
from rag_harness.settings.literal_keys import bare_address

_HALTING = {
    401: "the key is missing or wrong",
    402: "there is no credit",
    403: "the key may not do this",
    404: "there is nothing at this address",
    405: "it does not take this method",
}
_PASSING = {408, 409, 425, 429}
_SHOWN = 200


class StatusError(Exception):
    """A temporary error status; ``response`` says how long to wait."""

    def __init__(self, message: str, response: Any) -> None:
        super().__init__(message)
        self.response = response


def hidden(text: str, secrets: tuple[str, ...]) -> str:
    """Remove secrets from a message of a server or a library. Messages go into rows and logs."""
    written = {form for secret in secrets for form in forms_of(secret)}
    # Messages quote texts, and quoting doubles each backslash.
    written |= {form.replace("\\", "\\\\") for form in written}
    for form in sorted(written, key=len, reverse=True):
        text = text.replace(form, "…")
    return text


def hide(error: Exception, secrets: tuple[str, ...]) -> None:
    """Remove secrets from an error that quotes a service."""
    error.args = tuple(hidden(said, secrets) if isinstance(said, str) else said for said in error.args)
    if isinstance(error, ModelOutputError):
        error.raw = hidden(error.raw, secrets)


def broken_connections() -> tuple[type[Exception], ...]:
    """Return the errors that mean: no connection, or a broken one."""
    from httpx2 import HTTPError

    return HTTPError, ConnectionError


def is_nobody_there(error: BaseException) -> bool:
    """Return whether an error means that no connection was made."""
    from httpx2 import ConnectError

    return isinstance(error, ConnectError)


def refused(response: Any, said: str, name: str, where: str) -> Exception:
    """Return the error for the status of ``response``. ``said`` is the body, ``where`` the place of the spec."""
    status = response.status_code
    shown = " ".join(said.split())[:_SHOWN]
    if 300 <= status < 400:
        to = bare_address(response.headers.get("location", "nowhere"))
        return CriticalError(
            f"{name} answered {status}: it redirects to {to}. Redirects are not followed, for the headers would go "
            f"there too. If that is the service, name it as url in {where}."
        )
    if status in _HALTING:
        return CriticalError(
            f"{name} refused with {status}: {_HALTING[status]}. It said: {shown!r}. Check url and headers in {where}."
        )
    if status in _PASSING or status >= 500:
        return PassingError(StatusError(f"{status}: {shown}", response))
    return ModelCallError(f"{name} refused the request with {status}: {shown!r}")
