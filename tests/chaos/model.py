"""A model server that misbehaves in a way that can be changed while it runs."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import time
from contextlib import suppress
from functools import cache
from http.server import BaseHTTPRequestHandler

from tests.model_server import ModelServer

MIB = 2**20


class FaultyModel(ModelServer):
    """Answers as ``fault`` says; "" is as it should be."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.fault, self.sent = "", 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FaultyModel

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.calls[str(body["messages"][-1]["content"])[-40:]] += 1
        self.close_connection = True
        with suppress(OSError):
            self._answer(self.server.fault)

    def _answer(self, fault: str) -> None:
        if fault.startswith("429 "):
            self._whole(b'{"error": {"message": "slow"}}', 429, "application/json", ("retry-after", fault[4:]))
        elif fault == "":
            self._whole(event(json.dumps({"answer": "45 days"}), "stop") + b"data: [DONE]\n\n")
        elif fault == "page":
            self._whole(b"<html>Bad gateway</html>", 200, "text/html")
        elif fault == "brackets":
            self._whole(b"data: " + b"[" * 100_000 + b"\n\n")
        elif fault == "noise":
            self._whole(bytes(range(256)) * 20 + b"data: \xff\xfe{{{\n\n")
        elif fault == "bomb":
            self._whole(bomb(), 200, "text/event-stream", ("content-encoding", "gzip"))
        elif fault == "br":
            self._whole(b"\x0b\x02\x80", 200, "text/event-stream", ("content-encoding", "br"))
        elif fault == "silent":
            self._head()
            time.sleep(20)
        else:
            self._stream(fault)

    def _stream(self, fault: str) -> None:
        self._head()
        if fault == "dies":
            self._chunk(event('{"answer": "Lamps can'))
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif fault == "slow":
            for _ in range(400):
                self._chunk(event("word "))
                time.sleep(0.05)
        elif fault == "pings":
            for _ in range(400):
                self._chunk(b": ping\n\n")
                time.sleep(0.05)
        else:
            part = {"huge": event("word " * 13_000), "one line": b"a" * 2**16, "spaces": b"\n" * 2**16}[fault]
            for _ in range(MIB * 1024 // len(part)):
                self._chunk(part)

    def _head(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()

    def _chunk(self, content: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(content), content))
        self.server.sent += len(content)

    def _whole(
        self, content: bytes, status: int = 200, kind: str = "text/event-stream", *more: tuple[str, str]
    ) -> None:
        self.send_response(status)
        for name, value in (("content-type", kind), ("content-length", str(len(content))), *more):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        self.server.sent += len(content)

    def log_message(self, *args: object) -> None:
        """Keep quiet."""


FAULTS = (
    *("dies", "page", "noise", "brackets", "bomb", "br", "silent", "slow", "pings", "huge", "one line", "spaces"),
    *("429 1e9", "429 -5", "429 nan", "429 1e400", "429 soon", "429 Wed, 21 Oct 2099 07:28:00 GMT"),
)


def event(text: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    said = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(said).encode() + b"\n\n"


@cache
def bomb() -> bytes:
    return gzip.compress(b"data: " + b"a" * 300_000_000 + b"\n\n", 6)
