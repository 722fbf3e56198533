"""Listens on 127.0.0.1 for the spans of services under test: OTLP over HTTP, JSON or protobuf, packed or not."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from rag_harness.errors import ModelOutputError, PrerequisiteError, TraceError
from rag_harness.files.json_text import read_json
from rag_harness.files.log import log
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


class BrokenExports:
    """Counts requests with spans that broke off, by the address that they were sent to."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._lock = threading.Lock()

    def note(self, address: str) -> None:
        """Count one."""
        with self._lock:
            self._counts[address] += 1

    def taken(self) -> dict[str, int]:
        """Return what was counted since the last time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return dict(counts)


broken_exports = BrokenExports()
"""Those of this process: an exporter may hang up when its receiver is closed."""


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
        self._http.address = f"http://127.0.0.1:{self.port}{PATH}"
        self.inbox = self._http.inbox = SpanInbox(self._http.address)
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
    address: str

    def broke_off(self) -> None:
        """Note a request that broke off, for who waits for its spans and for the end of the run."""
        self.inbox.refuse("a request broke off before it was whole: the exporter hung up, or waited too long.")
        broken_exports.note(self.address)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - named by socketserver
        """Note a request that could not be handled. The terminal is pytest's, so the traceback goes into the log."""
        log.error("a request with spans could not be handled", exc_info=True)
        self.broke_off()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = _PATIENCE
    server: _Listening

    def handle_one_request(self) -> None:
        """Handle a request. An exporter may hang up at any time; between two requests nothing is lost by that."""
        self.raw_requestline = b""
        try:
            super().handle_one_request()
        except OSError:
            self.close_connection = True
            if self.raw_requestline.startswith(b"POST "):
                self.server.broke_off()

    def do_POST(self) -> None:
        """Take the spans of a request."""
        length = self.headers.get("content-length", "")
        if self.path != PATH:
            self._reply(404)
        elif not (length.isascii() and length.isdecimal()) or int(length) > LARGEST_REQUEST:
            self._reply(413)
        else:
            self._take_whole(int(length))

    def _take_whole(self, length: int) -> None:
        try:
            body = self.rfile.read(length)
        except TimeoutError:  # http.server takes it for the end of an idle connection
            body = b""
        if len(body) < length:
            raise ConnectionResetError("the exporter hung up")
        self._take(body)

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
        try:
            self.end_headers()
            self.wfile.write(body)
        except OSError:  # the exporter is gone, and what it had to say is heard
            self.close_connection = True

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
