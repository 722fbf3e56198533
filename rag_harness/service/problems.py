"""The error that a client is told: problem+json (RFC 9457), without a traceback or a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

"""Error numbers of the system for a full disk."""
_MOST_CHARACTERS = 200
_PHRASES = {each.value: each.phrase for each in HTTPStatus}


@dataclass
class ProblemError(Exception):
    """A request that is not answered as asked.

    Attributes:
        status: the HTTP status.
        code: one word for programs, e.g. ``quota_used_up``.
        detail: what was asked, what was found, what to do; no name of another tenant, no path of the server.
        headers: headers of the answer, e.g. Retry-After.
        extra: further members of the body.
    """

    status: int
    code: str
    detail: str
    headers: dict[str, str] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)

    def body(self) -> dict[str, Any]:
        """Return the members of the answer."""
        return {
            "type": "about:blank",
            "title": _PHRASES.get(self.status, "Error"),
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
            **self.extra,
        }


def no_room() -> ProblemError:
    """Return the problem of a document for which there is no room."""
    return ProblemError(507, "no_room", "The server has no room left for documents. Nothing was changed.")


def shortened(text: str) -> str:
    """Return the beginning of a text that was sent. Half a character in it must not break the answer."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _MOST_CHARACTERS else text[: _MOST_CHARACTERS - 1] + "…"
