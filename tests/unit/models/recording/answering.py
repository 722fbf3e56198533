"""A server on 127.0.0.1 that answers by path and counts. A stream continues after the client has read its beginning."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event

from tests.serving import running

BINARY = bytes(range(256))


def chunk(content: str, finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": finish}
    event = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def completion(text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    return json.dumps(body).encode()


class Answering:
    def __init__(self, deltas: Sequence[str]) -> None:
        self.url = ""
        self.calls: list[str] = []
        self.deltas = list(deltas)
        self.seen = Event()  # set by a test that has read the first delta
        self.seen.set()


@contextmanager
def answering(*deltas: str) -> Iterator[Answering]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            server.calls.append(self.path)
            path = self.path.partition("?")[0]
            if path == "/gzip":
                self._send(gzip.compress(b'{"packed": true}'), "application/json", {"content-encoding": "gzip"})
            elif path == "/broken":
                self._send(b'{"error": {"message": "no"}}', status=500)
            elif path == "/binary":
                self._send(BINARY, "application/octet-stream")
            elif path == "/empty":
                self._send(b"", "", status=204)
            else:
                self._send(json.dumps({"path": self.path, "n": len(server.calls)}).encode())

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["content-length"]))
            server.calls.append(self.path)
            try:
                streamed = json.loads(content).get("stream")
            except ValueError:
                return self._send(b'{"n": %d}' % len(server.calls))
            return self._stream() if streamed else self._send(completion("".join(server.deltas)))

        def _stream(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            parts = [chunk(""), *map(chunk, server.deltas), chunk("", "stop"), b"data: [DONE]\n\n"]
            for n, part in enumerate(parts):
                if n == 2:
                    assert server.seen.wait(20), "the client saw nothing of a stream that had begun"
                self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        def _send(
            self, body: bytes, kind: str = "application/json", more: dict[str, str] | None = None, status: int = 200
        ) -> None:
            self.send_response(status)
            headers = {"content-type": kind, "content-length": str(len(body)), "set-cookie": "sid=planted-cookie-77"}
            for name, value in {**headers, **(more or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    server = Answering(deltas)

    class Serving(ThreadingHTTPServer):
        request_queue_size = 128

    with running(Serving(("127.0.0.1", 0), Handler)) as http:
        server.url = f"http://127.0.0.1:{http.server_port}"
        yield server
