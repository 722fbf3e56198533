"""A server on a port of this machine that keeps what it is sent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from tests.serving import running

Answer = Callable[[str, Any], tuple[int, Any]]
"""Path and body of a request, to status and body of the reply."""


class Asked(NamedTuple):
    """A request."""

    path: str
    body: Any
    headers: dict[str, str]


class StubServer(NamedTuple):
    """A server that runs."""

    url: str
    asked: list[Asked]


@contextmanager
def stub_server(answer: Answer) -> Iterator[StubServer]:
    asked: list[Asked] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(Asked(self.path, body, dict(self.headers)))
            status, content = answer(self.path, body)
            said = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, *_: Any) -> None:
            pass

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
        yield StubServer(f"http://127.0.0.1:{server.server_port}", asked)
