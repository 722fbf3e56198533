"""The request for one query: what is sent, and what recordings know it by."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rag_harness.pipelines.endpoint.sessions import SessionId, Talk


@dataclass(frozen=True)
class Request:
    """The request for one query.

    Attributes:
        url: the address.
        body: the body's JSON; None without a body.
        headers: names and values.
        known_as: the address in recordings. It has no values of variables, which a replay need not know.
        left_out: the number of turns of the history that are too old to be sent.
        method: another method than the service's; empty for that.
        talk: its session, where the service keeps conversations itself.
        known: what recordings know it by, where that is not its body. It has no ids of sessions.
        opens: the request that opens a session for it, where one is needed.
        within: returns it as it is sent in a session.
    """

    url: str
    body: Any = None
    headers: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    known_as: str = ""
    left_out: int = 0
    method: str = ""
    talk: Talk | None = None
    known: Any = None
    opens: Request | None = None
    within: Callable[[SessionId], Request] | None = field(default=None, repr=False, compare=False)

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        return _bytes_of(self.body)

    @property
    def known_content(self) -> bytes:
        """The bytes that recordings know it by."""
        return self.content if self.known is None else _bytes_of(self.known)

    def in_session(self, session: SessionId | None) -> Request:
        """Return the request as it is sent in a session; as it is, where there is none.

        Raises:
            ModelOutputError: the session stands in a header, and its id cannot.
        """
        return self if session is None or self.within is None else self.within(session)


def _bytes_of(body: Any) -> bytes:
    return b"" if body is None else json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
