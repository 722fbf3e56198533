"""Servers on 127.0.0.1 that stand for a model: an address, a count of calls, and no words about clients that left."""

from __future__ import annotations

from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any


class ModelServer(ThreadingHTTPServer):
    """Answers each request in a thread of its own; ``calls`` counts what was asked, under ``lock``."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.calls: Counter[str] = Counter()
        self.lock = Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that have left, or were killed."""
