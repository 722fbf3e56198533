"""A server on 127.0.0.1 that answers what a test tells it to, one reply a request."""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One answer.

    ``length`` may promise more bytes than come; ``reset`` breaks the connection after the body; ``delay`` is in seconds
    before anything is sent; ``drip`` in seconds between two bytes; ``hangs`` sends nothing at all.
    """

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    kind: str = "application/json"
    length: int | None = None
    reset: bool = False
    delay: float = 0.0
    drip: float = 0.0
    hangs: bool = False


def as_json(content: object, status: int = 200, **headers: str) -> Reply:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, json.dumps(content).encode(), named)


def refusal(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    return as_json({"error": {"message": message, "code": code}}, status, **headers)


@dataclass
class Server:
    """Gives its replies in their order, the last one again and again, and keeps the requests."""

    url: str
    replies: list[Reply]
    requests: list[dict[str, Any]] = field(default_factory=list)
    in_flight: int = 0
    most_in_flight: int = 0
    stopped: Event = field(default_factory=Event)
    _lock: Any = field(default_factory=Lock)

    def take(self, request: dict[str, Any]) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            return self.next()

    def leave(self) -> None:
        with self._lock:
            self.in_flight -= 1

    def next(self) -> Reply:
        return self.replies[min(len(self.requests), len(self.replies)) - 1]


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    class Handler(BaseHTTPRequestHandler):
        _answers = False

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            reply, self._answers = server.take(json.loads(content)), True
            try:
                with suppress(ConnectionError):  # the client has left
                    self._send(reply)
            finally:
                self._leave()

        def _leave(self) -> None:
            if self._answers:
                self._answers = False
                server.leave()

        def _send(self, reply: Reply) -> None:
            if server.stopped.wait(None if reply.hangs else reply.delay):
                return
            self.send_response(reply.status)
            length = {} if reply.length == -1 else {"content-length": str(reply.length or len(reply.body))}
            for name, value in {"content-type": reply.kind, **length, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            parts = [bytes([byte]) for byte in reply.body] if reply.drip else [reply.body]
            for number, part in enumerate(parts, 1):
                if number == len(parts):
                    # Whoever has the end of its answer may ask again at once, before this thread goes on.
                    self._leave()
                self.wfile.write(part)
                if server.stopped.wait(reply.drip):
                    return
            if reply.reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    class Serving(ThreadingHTTPServer):
        request_queue_size = 128

    with Serving(("127.0.0.1", 0), Handler) as http:
        server = Server(f"http://127.0.0.1:{http.server_port}/v1", list(replies))
        # The default poll interval makes every shutdown wait for half a second.
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.stopped.set()
            http.shutdown()
            thread.join()
