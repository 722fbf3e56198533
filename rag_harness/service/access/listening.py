"""How uvicorn listens: limits for slow clients, for clients that do not read, and for the number of connections.

uvicorn has no time limit for a request's headers, and none for a client that does not read its answer.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rag_harness.service.problems import ProblemError

_MOST_HEADERS = 16 << 10


class Connection(H11Protocol):
    """One connection."""

    headers_s: ClassVar[float] = 10.0
    """Seconds until a request's headers must be complete, from the connection or from their first byte on."""
    reading_s: ClassVar[float] = 30.0
    """Seconds for which a client may leave sent data unread."""
    most: ClassVar[int] = 512
    """How many connections may be open at once."""

    _due: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or answer that there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.most:
            self._break_off(ProblemError(503, "too_busy", "There are too many connections. Come back later."))
            return
        self._due = self.loop.call_later(self.headers_s, self._without_headers)

    def data_received(self, data: bytes) -> None:
        """Take bytes. Once a request's headers have begun, all of them must come in time."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._stop_waiting()
        elif self._due is None and self.conn.trailing_data[0]:
            self._due = self.loop.call_later(self.headers_s, self._without_headers)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._stop_waiting()
        self._read_on()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait until the client reads, up to a limit."""
        super().pause_writing()
        self._stuck = self.loop.call_later(self.reading_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue: the client reads again."""
        self._read_on()
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words, not ours
        """Answer a request that is not HTTP."""
        self._break_off(ProblemError(400, "no_http", "This is no request of HTTP/1.1, or its headers are too long."))

    def _stop_waiting(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _read_on(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _without_headers(self) -> None:
        self._due = None
        self._break_off(ProblemError(408, "too_slow", "The request's headers came too slowly."))

    def _break_off(self, problem: ProblemError) -> None:
        """Send an answer below the application, and close the connection."""
        if self.transport.is_closing():
            return
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            self.transport.write(_answer(problem))
        self.transport.close()


def settings(most_connections: int = Connection.most) -> dict[str, Any]:
    """Return the arguments for ``uvicorn.Config`` besides application, host and port.

    Headers of proxies are not trusted, and no header names the server software.
    """
    return {
        "http": type("Connection", (Connection,), {"most": most_connections}),
        "ws": "none",
        "h11_max_incomplete_event_size": _MOST_HEADERS,
        "timeout_keep_alive": 15,
        "proxy_headers": False,
        "server_header": False,
        "access_log": False,
    }


def _answer(problem: ProblemError) -> bytes:
    body = json.dumps(problem.body()).encode()
    head = (
        f"HTTP/1.1 {problem.status} {problem.body()['title']}\r\nContent-Type: application/problem+json\r\n"
        f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
        f"Retry-After: 1\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
