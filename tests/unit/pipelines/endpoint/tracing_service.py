"""A service that is asked over HTTP, and sends the spans of its answer to the harness, as it is told to."""

from __future__ import annotations

import gzip
import json
import random
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from uuid import uuid4

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from rag_harness.pipelines.otel.spans import SpanRecord, request_of
from tests.serving import running

_MS = 10**6


def free_port() -> int:
    with closing(socket.socket()) as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def spans_of(query: str, traceparent: str) -> list[SpanRecord]:
    """Return the spans of an answer: the request, a search, a call of a model."""
    _, trace_id, parent, _ = traceparent.split("-")
    begin = time.time_ns()
    first, search, model = (f"{random.getrandbits(64) | 1:016x}" for _ in range(3))
    text = f"You can return a {query} within 45 days of its delivery."
    found = {"openinference.span.kind": "RETRIEVER", "input.value": query}
    found |= {"retrieval.documents.0.document.id": f"{query}.md", "retrieval.documents.0.document.content": text}
    call = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o-mini", "llm.token_count.prompt": 30}

    def span(name: str, key: str, around: str, at: tuple[int, int], told: dict[str, Any]) -> SpanRecord:
        return SpanRecord(name, trace_id, key, around, begin + at[0] * _MS, begin + at[1] * _MS, told)

    return [
        span("search", search, first, (1, 3), found),
        span("model", model, first, (3, 6), call),
        span("POST /query", first, parent, (0, 7), {"http.request.method": "POST"}),
    ]


@dataclass
class TracingService:
    """What the service does.

    ``spans`` makes what it sends, ``delay`` is in seconds before each request with spans, ``one_by_one`` the same with
    a request for each span; ``before`` is whether they are sent before the reply, so that a test need not wait for
    them; ``heard`` are session and question of each request; ``hangs_up`` how often it does so before each export.
    """

    port: int
    url: str = ""
    form: str = "protobuf"
    delay: float = 0.0
    shuffled: bool = False
    one_by_one: float = 0.0
    before: bool = False
    spans: Callable[[str, str], list[SpanRecord]] = spans_of
    headers: list[dict[str, str]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    heard: list[tuple[str, str]] = field(default_factory=list)
    hangs_up: int = 0

    def export(self, query: str, traceparent: str) -> None:
        for _ in range(self.hangs_up):
            with socket.create_connection(("127.0.0.1", self.port)) as client:
                client.sendall(b"POST /v1/traces HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{")
        spans = self.spans(query, traceparent)
        batches = [[span] for span in spans] if self.shuffled or self.one_by_one else [spans]
        if self.shuffled:
            random.shuffle(batches)
        for batch in batches:
            time.sleep(self.one_by_one or self.delay * (random.random() if self.shuffled else 1))
            body, kind = self._body(batch)
            self.post(gzip.compress(body), {"content-type": kind, "content-encoding": "gzip"})

    def _body(self, spans: list[SpanRecord]) -> tuple[bytes, str]:
        said = request_of(spans, "shop")
        if self.form == "json":
            return json.dumps(said).encode(), "application/json"
        # protobuf's own JSON has bytes in base 64.
        for span in said["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            from base64 import b64encode

            span |= {
                name: b64encode(bytes.fromhex(span[name])).decode()
                for name in ("traceId", "spanId", "parentSpanId")
                if name in span
            }
        message: Any = ParseDict(said, ExportTraceServiceRequest())
        return message.SerializeToString(), "application/x-protobuf"

    def post(self, body: bytes, headers: dict[str, str], path: str = "/v1/traces") -> int:
        asked = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", body, headers)
        try:
            with urllib.request.urlopen(asked, timeout=5) as answered:
                status: int = answered.status
        except urllib.error.HTTPError as error:
            status = error.code
            self.refused.append(status)
        except OSError:
            # Whoever listened has ended meanwhile.
            status = 0
        return status


@contextmanager
def tracing_service(**told: Any) -> Iterator[TracingService]:
    """Serve on a port of this machine."""
    service = TracingService(free_port(), **told)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            query, session = asked["query"], asked.get("session")
            service.heard.append((session or "", query))
            service.headers.append({name.lower(): value for name, value in self.headers.items()})
            body = json.dumps(
                {"answer": f"A {query} within 45 days. [Source 1]", "session": session or uuid4().hex}
            ).encode()
            if service.before and "traceparent" in self.headers:
                service.export(query, self.headers["traceparent"])
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            if not service.before and "traceparent" in self.headers:
                threading.Thread(target=service.export, args=(query, self.headers["traceparent"]), daemon=True).start()

        def log_message(self, format: str, *args: object) -> None:
            """Stay silent."""

    class Serving(ThreadingHTTPServer):
        request_queue_size = 128
        daemon_threads = True

    with running(Serving(("127.0.0.1", 0), Handler)) as http:
        service.url = f"http://127.0.0.1:{http.server_port}/query"
        yield service
