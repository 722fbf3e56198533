"""Listens on 127.0.0.1 for the spans of services under test: OTLP over HTTP, JSON or protobuf, packed or not."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rag_harness.errors import ModelOutputError, PrerequisiteError, TraceError
from rag_harness.files.json_text import read_json
from rag_harness.models.unpacked import Unpacked
from rag_harness.traces.otlp.otlp_json import spans_of_request
from rag_harness.traces.otlp.otlp_protobuf import spans_of_protobuf
from rag_harness.traces.span_inbox import SpanInbox
from rag_harness.traces.span_record import SpanRecord

PATH = "/v1/traces"
LARGEST_REQUEST = 64 * 2**20
"""Bytes, unpacked. An exporter sends 512 spans at once."""
_PATIENCE = 30.0
"""Seconds that a request may say nothing."""


class SpanServer:
    """A receiver at a port of this machine. Nothing outside of it can reach it.

    Args:
        port: where it listens; 0: wherever there is room.
        where: who asks for it, for messages.

    Raises:
        PrerequisiteError: something else listens there.
    """

    def __init__(self, port: int, where: str) -> None:
        try:
            self._http = _Listening(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            why = getattr(error, "strerror", "") or error
            raise PrerequisiteError(
                f"{where} waits for spans at port {port} of 127.0.0.1, which cannot be had ({why}). Nothing was "
                f"asked. End what listens there (a collector, another run), or name another: traces_port."
            ) from error
        self.port: int = self._http.server_port
        self.inbox = self._http.inbox = SpanInbox(f"http://127.0.0.1:{self.port}{PATH}")
        # With the default interval, the end of a run would wait for half a second.
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, name="rag-spans", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    # Two runs would get each other's spans.
    allow_reuse_port = False
    request_queue_size = 128
    inbox: SpanInbox


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    server: _Listening

    def do_POST(self) -> None:
        """Take the spans of a request."""
        length = self.headers.get("content-length", "")
        if self.path != PATH:
            self._reply(404)
        elif not (length.isascii() and length.isdecimal()) or int(length) > LARGEST_REQUEST:
            self._reply(413)
        else:
            self._take(self.rfile.read(int(length)))

    def _take(self, body: bytes) -> None:
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        try:
            self.server.inbox.take(list(_spans_in(body, kind, self.headers.get("content-encoding", ""))))
        except (ModelOutputError, PrerequisiteError, ValueError) as error:
            self.server.inbox.refuse(str(error))
            self._reply(400, str(error).encode("utf-8", "replace"), "text/plain; charset=utf-8")
            return
        self._reply(200, b"" if kind == "application/x-protobuf" else b"{}", kind or "application/json")

    def _reply(self, status: int, body: bytes = b"", kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if status != 200:
            self.close_connection = True
            self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent: the terminal is pytest's."""


def _spans_in(body: bytes, kind: str, packing: str) -> Iterable[SpanRecord]:
    unpacked = Unpacked("The service's exporter", packing, LARGEST_REQUEST)
    content = b"".join(unpacked.feed(body))
    if kind == "application/x-protobuf":
        return spans_of_protobuf(content)
    try:
        said = read_json(content)
    except ValueError as error:
        raise TraceError(f"a request of {len(content):,} bytes is no JSON: {error}") from error
    return spans_of_request(said)
