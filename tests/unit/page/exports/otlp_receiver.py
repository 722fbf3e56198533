"""A backend of OpenTelemetry on a port of this machine: it takes what is OTLP by the protocol's own messages."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from rag_harness.page.exports.otlp import OPT_IN
from tests.serving import running


@dataclass
class Kept:
    """A span as the backend keeps it."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    start: int
    end: int
    attributes: dict[str, Any]
    events: list[tuple[str, int, dict[str, Any]]]
    failed: bool
    message: str

    @property
    def scores(self) -> dict[str, float]:
        said = [attributes for name, _, attributes in self.events if name == "gen_ai.evaluation.result"]
        return {each["gen_ai.evaluation.name"]: each["gen_ai.evaluation.score.value"] for each in said}


@dataclass
class OtlpReceiver:
    """What a backend keeps, by the ids of trace and span. ``status`` refuses, ``rejects`` refuses so many spans.

    ``busy`` are the replies of the first requests: status and Retry-After. ``page`` is said in place of a reply.
    """

    url: str = ""
    takes_json: bool = True
    status: int = 200
    fails_after: int = 1000
    rejects: int = 0
    busy: list[tuple[int, str]] = field(default_factory=list)
    page: tuple[str, bytes] | None = None
    spans: dict[tuple[str, str], Kept] = field(default_factory=dict)
    asked: list[dict[str, str]] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)

    @property
    def trials(self) -> list[Kept]:
        return [span for span in self.spans.values() if not span.parent_id]

    def below(self, around: Kept) -> list[Kept]:
        return [span for span in self.spans.values() if span.parent_id == around.span_id]

    def take(self, path: str, kind: str, body: bytes) -> tuple[int, bytes]:
        assert path.endswith("/v1/traces")
        self.bodies.append(body)
        if self.status != 200 or len(self.bodies) > self.fails_after:
            return self.status if self.status != 200 else 503, b"busy"
        if kind == "application/json" and not self.takes_json:
            return 415, b"Unsupported content type"
        is_json = kind == "application/json"
        request = ExportTraceServiceRequest()
        request = Parse(body, request) if is_json else ExportTraceServiceRequest.FromString(body)
        for resource in request.resource_spans:
            for span in resource.scope_spans[0].spans:
                self._keep(_kept(span, is_json))
        if is_json:
            partial = {"partialSuccess": {"rejectedSpans": str(self.rejects), "errorMessage": "too old"}}
            return 200, json.dumps(partial if self.rejects else {}).encode()
        reply = ExportTraceServiceResponse()
        reply.partial_success.rejected_spans = self.rejects
        return 200, reply.SerializeToString()

    def _keep(self, span: Kept) -> None:
        assert len(bytes.fromhex(span.trace_id)) == 16
        assert len(bytes.fromhex(span.span_id)) == 8
        assert 0 < span.start <= span.end
        assert not span.parent_id or (span.trace_id, span.parent_id) in self.spans, "a span comes before its parent"
        self.spans[span.trace_id, span.span_id] = span


def _kept(span: Any, is_json: bool) -> Kept:
    def hexadecimal(found: bytes) -> str:
        # JSON of OTLP has ids in hexadecimal digits, and protobuf's own reader takes them for base 64.
        return b64encode(found).decode() if is_json else found.hex()

    return Kept(
        span.name,
        hexadecimal(span.trace_id),
        hexadecimal(span.span_id),
        hexadecimal(span.parent_span_id),
        span.start_time_unix_nano,
        span.end_time_unix_nano,
        _values(span.attributes),
        [(event.name, event.time_unix_nano, _values(event.attributes)) for event in span.events],
        span.status.code == 2,
        span.status.message,
    )


def _values(pairs: Any) -> dict[str, Any]:
    found = {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}
    assert len(found) == len(pairs), "an attribute twice"
    return found


@contextmanager
def otlp_receiver(**told: Any) -> Iterator[OtlpReceiver]:
    """Serve on a port of this machine."""
    receiver = OtlpReceiver(**told)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            receiver.asked.append({name.lower(): value for name, value in self.headers.items()})
            if receiver.busy or receiver.page is not None:
                (status, after), (kind, said) = (receiver.busy or [(200, "")]).pop(0), receiver.page or ("", b"busy")
                self.send_response(status)
                for name, value in (("retry-after", after), ("content-type", kind), ("content-length", str(len(said)))):
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(said)
                return
            try:
                status, said = receiver.take(self.path, self.headers["content-type"], body)
            except Exception as error:
                status, said = 400, repr(error).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    with running(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as http:
        receiver.url = f"http://127.0.0.1:{http.server_port}"
        yield receiver


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> Iterator[OtlpReceiver]:
    """Serve without the headers, names and wishes of this machine."""
    for name in ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_SERVICE_NAME", OPT_IN):
        monkeypatch.delenv(name, raising=False)
    with otlp_receiver() as running_receiver:
        yield running_receiver
