from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")


from rag_harness.core.errors import PrerequisiteError
from rag_harness.service import traces
from rag_harness.service.observations import spans_of, trace_ids
from rag_harness.service.traces import Exporter, address
from tests.unit.service.observing.seen import SECRET_WORDS, TRACEPARENT, seen


class Collector(ThreadingHTTPServer):
    """Keeps what is sent to it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[tuple[str, bytes]] = []
        self.status = 200

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def spans(self) -> list[Any]:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

        read = [ExportTraceServiceRequest.FromString(body) for _, body in self.bodies]
        return [
            span for one in read for resource in one.resource_spans for s in resource.scope_spans for span in s.spans
        ]


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def collecting() -> Iterator[Collector]:
    server = Collector()
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


def _sent(collector: Collector, asked: Any) -> list[Any]:
    exporter = Exporter(address(collector.url))
    exporter.export(asked, spans_of(asked))
    exporter.close()
    return collector.spans()


def test_a_collector_gets_the_spans_of_a_question(collector: Collector) -> None:
    asked = seen(began=1_800_000_000.25)
    spans = _sent(collector, asked)
    assert {path for path, _ in collector.bodies} == {"/v1/traces"}
    assert [span.name for span in spans] == [each.name for each in spans_of(asked)]
    first, last = spans[0], spans[-1]
    assert first.trace_id.hex() == asked.ids.trace_id
    assert (first.parent_span_id, last.parent_span_id) == (b"", spans[3].span_id)
    assert first.start_time_unix_nano == 1_800_000_000_250_000_000
    assert first.end_time_unix_nano - first.start_time_unix_nano == 100_000_000
    said = {each.key: each.value for each in last.attributes}
    assert said["gen_ai.usage.input_tokens"].int_value == 120
    assert said["gen_ai.request.model"].string_value == "gpt-x"
    assert said["gen_ai.response.time_to_first_chunk"].double_value == 0.025


def test_a_clients_trace_is_continued(collector: Collector) -> None:
    asked = seen(trace_ids(TRACEPARENT))
    first = _sent(collector, asked)[0]
    assert first.trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    assert first.parent_span_id.hex() == "b7ad6b7169203331"
    assert {each.key: each.value.string_value for each in first.attributes}[
        "rag_harness.trace_id"
    ] == asked.ids.trace_id


def test_what_a_client_does_not_want_sampled_is_not_sent(collector: Collector) -> None:
    assert _sent(collector, seen(trace_ids(f"{TRACEPARENT[:-2]}00"))) == []


def test_a_failure_has_the_status_of_one(collector: Collector) -> None:
    spans = _sent(collector, seen(outcome="failed", failed_stage="generate", error_type="ModelCallError"))
    assert [span.status.code for span in spans] == [2, 0, 0, 2, 0]


def test_no_words_are_exported(collector: Collector) -> None:
    _sent(collector, seen())
    sent = b"".join(body for _, body in collector.bodies).lower()
    assert [word for word in SECRET_WORDS if word.encode() in sent] == []


def test_the_service_names_itself(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "lamps")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=search")
    _sent(collector, seen())
    assert b"lamps" in collector.bodies[0][1]


def test_a_collector_that_is_away_slows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = Exporter("http://127.0.0.1:9/v1/traces")
    monkeypatch.setattr(traces, "_SECONDS", 0.2)
    asked = seen()
    spans = spans_of(asked)
    started = time.perf_counter()
    for _ in range(200):
        exporter.export(asked, spans)
    exporter.close()
    # Without an end of its own the SDK takes 15 s here, and its threads go on beside other tests.
    assert time.perf_counter() - started < 10
    assert not [thread for thread in threading.enumerate() if thread.name == "rag-otlp"]


def test_where_traces_go(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    assert address("") == ""
    assert address("http://c:4318/") == "http://c:4318/v1/traces"
    assert address("http://c:4318/v1/traces") == "http://c:4318/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4318")
    assert address("") == "http://env:4318/v1/traces"
    assert address("http://c:4318") == "http://c:4318/v1/traces"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://exact/path")
    assert address("") == "http://exact/path"


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(PrerequisiteError, match=r"pip install 'pytest-rag-harness\[service,otlp\]'"):
        Exporter("http://c:4318/v1/traces")
