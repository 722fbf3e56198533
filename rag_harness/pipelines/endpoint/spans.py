"""Spans of a service: a server that receives them by OTLP, an inbox by trial, and their scrubbed files."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from time import monotonic
from typing import Any

from rag_harness.core.errors import (
    DataError,
    ModelOutputError,
    PrerequisiteError,
    RecordingWriteError,
    SettingsError,
    TraceError,
)
from rag_harness.core.files import write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.log import log
from rag_harness.core.settings import Settings
from rag_harness.core.settings.endpoints import EndpointSpec
from rag_harness.core.settings.roles import SECRET_HEADER, SECRET_NAME
from rag_harness.models.calls import Decompressor
from rag_harness.models.recording.scrubbing import REDACTED, Cleaner, json_of
from rag_harness.pipelines.otel.spans import SpanRecord, kind_of, request_of, spans_of_protobuf, spans_of_request
from rag_harness.pipelines.otel.steps import MOST_SPANS

_LOOK_SECONDS = 0.02


class AwaitedTrace:
    """The trace of one trial: the spans below the span that represents the harness.

    Attributes:
        trace_id: 32 hexadecimal digits, drawn.
        span_id: 16 hexadecimal digits, drawn: the span that the service's first one is below.
        spans: those that have come, each once.
    """

    def __init__(self) -> None:
        self.trace_id, self.span_id = secrets.token_hex(16), secrets.token_hex(8)
        self.spans: dict[str, SpanRecord] = {}
        self._last = monotonic()

    @property
    def traceparent(self) -> str:
        """The header that names the trace of a request, and requests its spans (W3C Trace Context)."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def take(self, span: SpanRecord) -> None:
        """Take a span; of one that comes twice the first counts."""
        if len(self.spans) <= MOST_SPANS:
            self.spans.setdefault(span.span_id, span)
        self._last = monotonic()

    @property
    def orphans(self) -> list[SpanRecord]:
        """Spans whose parent has not come."""
        known = self.spans.keys() | {self.span_id}
        return [span for span in list(self.spans.values()) if span.parent_id not in known]

    def is_whole(self, late: float) -> bool:
        """Return whether the service's first span has come, each other's parent, and nothing new for ``late`` seconds.

        The first span ends last, so an exporter sends it after those inside of it. Where it comes alone, those that
        say what the app did are still on their way.
        """
        spans = list(self.spans.values())
        has_first = any(span.parent_id == self.span_id for span in spans) and any(map(kind_of, spans))
        return has_first and not self.orphans and not self.is_coming(late)

    def is_coming(self, late: float) -> bool:
        """Return whether something new has come within ``late`` seconds."""
        return monotonic() - self._last < late


class SpanInbox:
    """Takes spans of any trace, and keeps those that are awaited.

    Args:
        address: where spans are sent to, for messages.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._awaited: dict[str, AwaitedTrace] = {}
        self._others, self._refused = 0, ""

    def expect(self) -> AwaitedTrace:
        """Return a new trace, whose spans are stored until ``forget``."""
        trace = AwaitedTrace()
        self._awaited[trace.trace_id] = trace
        return trace

    def forget(self, trace: AwaitedTrace) -> None:
        """Keep no more spans of a trace."""
        self._awaited.pop(trace.trace_id, None)

    def take(self, spans: Iterable[SpanRecord]) -> None:
        """Take spans from a request. May be called from any thread."""
        for span in spans:
            trace = self._awaited.get(span.trace_id)
            if trace is None:
                self._others += 1
            else:
                trace.take(span)

    def refuse(self, why: str) -> None:
        """Note why a request could not be read. The message of a trial that waits in vain has it."""
        self._refused = why

    async def spans_of(self, trace: AwaitedTrace, seconds: float, late: float) -> list[SpanRecord]:
        """Return the spans of a trace once it is whole, and nothing new has come for ``late`` seconds.

        Raises:
            TraceError: none has come within ``seconds``, the span around one has not, or they are still coming.
        """
        until = monotonic() + seconds
        while not trace.is_whole(late) and monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
        if not trace.spans:
            raise TraceError(f"No span of this trial came to {self._address} within {seconds:g} s.{self._hint()}")
        if trace.orphans:
            lost = trace.orphans[0]
            raise TraceError(
                f"Span {lost.name!r} came to {self._address}, and the span around it did not within {seconds:g} s, so "
                f"others may be missing, too. Let the service export sooner, OTEL_BSP_SCHEDULE_DELAY=500, and sample "
                f"all; or wait longer: traces_wait."
            )
        if trace.is_coming(late):
            raise TraceError(
                f"Spans of this trial were still coming to {self._address} {seconds:g} s after the answer, so others "
                f"may be missing. Let the service export sooner, OTEL_BSP_SCHEDULE_DELAY=500; or wait longer: "
                f"traces_wait."
            )
        return list(trace.spans.values())

    def _hint(self) -> str:
        if self._refused:
            return f" What came could not be read: {self._refused}"
        if self._others:
            return (
                f" {self._others} spans of other traces did: the service begins traces of its own. Let it take up the "
                f"header traceparent, as the instrumentations of web frameworks do."
            )
        return (
            f" Start the service with OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={self._address} and "
            "OTEL_BSP_SCHEDULE_DELAY=500, and instrument it, its web framework included: "
            "docs/how-to/traces-service.md."
        )


# Listens on 127.0.0.1 for the spans of services under test: OTLP over HTTP, JSON or protobuf, packed or not.

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
        """Return the counts since the last time."""
        with self._lock:
            counts, self._counts = self._counts, Counter()
        return dict(counts)


broken_exports = BrokenExports()
"""Those of this process: an exporter may hang up when its receiver is closed."""


class SpanServer:
    """A receiver at a port of this machine. Nothing outside of it can reach it.

    Args:
        port: its port; 0: any free one.
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
        """Note a request that broke off. The trial that waits for its spans and the end of the run report it."""
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
    unpacked = Decompressor("The service's exporter", packing, LARGEST_REQUEST)
    content = b"".join(unpacked.feed(body))
    if kind == "application/x-protobuf":
        return spans_of_protobuf(content)
    try:
        said = read_json(content)
    except ValueError as error:
        raise TraceError(f"a request of {len(content):,} bytes is not JSON: {error}") from error
    return spans_of_request(said)


# Spans without secrets and private text: their words are cleaned, and never their ids, their times or a number.


def cleaned_span(span: SpanRecord, cleaner: Cleaner) -> SpanRecord:
    """Return a span whose name, message, attributes and events are clean."""
    return replace(
        span,
        name=cleaner.text(span.name),
        message=cleaner.text(span.message),
        attributes=_attributes(span.attributes, cleaner),
        events=tuple(
            replace(event, name=cleaner.text(event.name), attributes=_attributes(event.attributes, cleaner))
            for event in span.events
        ),
    )


def _attributes(said: Mapping[str, Any], cleaner: Cleaner) -> dict[str, Any]:
    return {
        cleaner.without_secrets(name): REDACTED
        if _is_secret(name) and not _is_number(value)
        else _value(value, cleaner)
        for name, value in said.items()
    }


def _is_secret(name: str) -> bool:
    """Return whether an attribute has the name of a secret: ``app.api_key``, ``http.request.header.cookie``."""
    last = name.rpartition(".")[2]
    return bool(SECRET_NAME.fullmatch(last) or (".header." in name and SECRET_HEADER.search(last)))


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def _value(value: Any, cleaner: Cleaner) -> Any:
    if isinstance(value, str):
        # Arguments, messages and documents are in attributes as JSON, with names of their own.
        said = json_of(value)
        if said is None:
            return cleaner.text(value)
        cleaned = cleaner.value(said)
        return value if cleaned == said else json.dumps(cleaned, ensure_ascii=False)
    if isinstance(value, Mapping):
        return _attributes(value, cleaner)
    return [_value(each, cleaner) for each in value] if isinstance(value, (list, tuple)) else value


_WORKERS = "PYTEST_XDIST_WORKER_COUNT"
_servers: dict[int, SpanServer] = {}
"""By port: two services of a run may send to one."""


class Listening:
    """The spans of one service.

    Args:
        spec: the service.
        cleaner: removes secrets and private text from stored spans.
    """

    def __init__(self, spec: EndpointSpec, cleaner: Cleaner) -> None:
        self._spec, self._cleaner = spec, cleaner
        self._server: SpanServer | None = None

    def open(self) -> None:
        """Listen, unless that is done.

        Raises:
            PrerequisiteError: the port is taken.
        """
        if self._server is None:
            port = self._spec.traces_port
            self._server = _servers.get(port) or SpanServer(port, self._spec.where or self._spec.name)
            _servers[port] = self._server

    @property
    def port(self) -> int:
        """Where it listens, once it does."""
        return self._server.port if self._server is not None else self._spec.traces_port

    @contextmanager
    def expecting(self) -> Iterator[AwaitedTrace]:
        """Keep the spans of a new trace during the block."""
        self.open()
        assert self._server is not None
        trace = self._server.inbox.expect()
        try:
            yield trace
        finally:
            self._server.inbox.forget(trace)

    async def spans_of(self, trace: AwaitedTrace) -> list[SpanRecord]:
        """Return the spans of a trace, once it is whole, without secrets.

        Raises:
            TraceError: it is not whole in time.
        """
        assert self._server is not None
        spans = await self._server.inbox.spans_of(trace, self._spec.traces_wait, self._spec.traces_late)
        return [cleaned_span(span, self._cleaner) for span in spans]

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None and _servers.pop(self._spec.traces_port, None) is not None:
            self._server.close()
        self._server = None


def spans_file(recording: Path) -> Path:
    """Return the file of the spans beside that of an answer."""
    return recording.with_suffix(".spans.json")


def keep_spans(recording: Path, spans: Sequence[SpanRecord] | None, service: str) -> None:
    """Write the spans of an answer beside where it is kept. Those of an earlier answer are gone where it has none.

    Raises:
        RecordingWriteError: the disk is full or broken.
    """
    try:
        if spans is None:
            spans_file(recording).unlink(missing_ok=True)
            return
        said = json.dumps(request_of(spans, service), ensure_ascii=False)
        write_atomically(spans_file(recording), said.encode("utf-8", "replace"))
    except OSError as error:
        raise RecordingWriteError(
            f"Spans cannot be kept: {spans_file(recording)}: {error.strerror or error}. Make room, or name another "
            f"folder with --rag-project."
        ) from error


def kept_spans(recording: Path) -> list[SpanRecord]:
    """Return the spans that were recorded with an answer.

    Raises:
        DataError: the file is damaged.
        TraceError: it holds no spans.
    """
    file = spans_file(recording)
    try:
        return list(spans_of_request(read_json(file.read_bytes())))
    except (OSError, ValueError) as error:
        raise DataError(f"{file} cannot be read: {error}. Delete it and its answer, and record them again.") from error


def check_one_process(spec: EndpointSpec, settings: Settings) -> None:
    """Refuse a run whose processes would all listen at one port.

    Raises:
        SettingsError: trials run on other machines.
        PrerequisiteError: xdist has several workers.
    """
    if settings.engine == "ray":
        raise SettingsError(f"{spec.where}: traces are received by the process that asks. Leave --rag-engine=ray out.")
    if int(os.environ.get(_WORKERS) or 1) > 1:
        raise PrerequisiteError(
            f"{spec.where}: spans come to one port, and -n {os.environ[_WORKERS]} has several processes. Nothing was "
            f"asked. Leave -n out: --rag-concurrency keeps many trials in flight in one."
        )
