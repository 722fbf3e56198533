"""Spans of a service are received, and come to the trial that they are of."""

from __future__ import annotations

import json
import re
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import PrerequisiteError, RecordingMissError, SettingsError, TraceError
from rag_harness.core.log import log
from rag_harness.core.settings.endpoints import read_endpoints
from rag_harness.core.types import Query
from rag_harness.models.recording.scrubbing import Cleaner
from rag_harness.pipelines.endpoint import spans
from rag_harness.pipelines.endpoint.spans import PATH, SpanServer, broken_exports, cleaned_span
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, request_of, spans_of_request
from tests.unit.pipelines.endpoint.services import Service
from tests.unit.pipelines.endpoint.tracing_service import TracingService, spans_of, tracing_service

# The receiver of spans says nothing to the terminal, whatever an exporter does, and counts what broke off.

# The receiver of spans says nothing to the terminal, whatever an exporter does, and counts what broke off.

HEAD = f"POST {PATH} HTTP/1.1\r\nContent-Length: 1000\r\n".encode()


@pytest.fixture
def server() -> Iterator[SpanServer]:
    broken_exports.taken()
    made = SpanServer(0, "test")
    yield made
    made.close()


def sent(server: SpanServer, content: bytes, resets: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(content)
        if resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def counted(server: SpanServer, number: int) -> bool:
    """Wait until so many are counted, and no more."""
    found, until = 0, time.monotonic() + 5
    while found < number and time.monotonic() < until:
        found += broken_exports.taken().get(f"http://127.0.0.1:{server.port}{PATH}", 0)
        time.sleep(0.01)
    return found == number


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("content", [HEAD + b"\r\n{", HEAD + b"\r\n", HEAD + b"\r\n" + b"x" * 999])
def test_an_exporter_that_hangs_up_is_counted_in_silence(
    server: SpanServer, capfd: pytest.CaptureFixture[str], content: bytes, resets: bool
) -> None:
    for _ in range(3):
        sent(server, content, resets)
    assert counted(server, 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("content", [b"", b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n"])
def test_what_sends_no_spans_is_not_counted(
    server: SpanServer, capfd: pytest.CaptureFixture[str], content: bytes, resets: bool
) -> None:
    sent(server, content, resets)
    sent(server, HEAD + b"\r\n", resets)
    assert counted(server, 1)
    assert capfd.readouterr() == ("", "")


def test_an_exporter_that_falls_silent_is_counted(
    server: SpanServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans._Handler, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(HEAD + b"\r\n{")
        assert counted(server, 1)
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_ours_is_logged_and_counted_and_not_printed(
    server: SpanServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    said: list[str] = []
    noted: Callable[..., None] = lambda message, **_: said.append(message)  # noqa: E731
    monkeypatch.setattr(spans, "_spans_in", broken)
    monkeypatch.setattr(log, "error", noted)
    sent(server, HEAD + b"\r\n" + b"x" * 1000, resets=False)
    assert counted(server, 1)
    assert said == ["a request with spans could not be handled"]
    assert capfd.readouterr() == ("", "")


def test_who_waits_in_vain_is_told(server: SpanServer) -> None:
    sent(server, HEAD + b"\r\n{", resets=True)
    assert counted(server, 1)
    assert "the exporter hung up" in server.inbox._hint()


# What is kept of a span is clean in all its words, and its ids, times and numbers are those that came.

KEY = "geheim-12345"
SPAN = SpanRecord("search", "1" * 32, "2" * 16, "3" * 16, 1_700_000_000 * 10**9, 1_700_000_001 * 10**9)
DIGITS = Cleaner([KEY], lambda text: re.sub("[0-9]", "#", text))
"""A scrub of numbers, as one of telephone numbers is."""


def test_ids_times_and_numbers_stay_whatever_is_scrubbed() -> None:
    numbers = {"llm.token_count.prompt": 30, "llm.cost.total": 0.5, "app.password": True}
    event = SpanEvent("call 0800", 1_700_000_000 * 10**9, {"n": 7, "said": "call 0800"})
    (kept,) = spans_of_request(
        request_of([cleaned_span(replace(SPAN, attributes=numbers, events=(event,)), DIGITS)], "s")
    )
    assert replace(kept, events=()) == replace(SPAN, attributes=numbers)
    assert kept.events == (SpanEvent("call ####", event.at_ns, {"n": 7, "said": "call ####"}),)


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"input.value": "call 0800"}, {"input.value": "call ####"}),
        ({f"user.{KEY}.name": "a"}, {"user.REDACTED.name": "a"}),
        ({"app.api_key": "abc"}, {"app.api_key": "REDACTED"}),
        ({"http.request.header.authorization": ["Bearer abc"]}, {"http.request.header.authorization": "REDACTED"}),
        ({"http.request.header.set-cookie": ["id=abc"]}, {"http.request.header.set-cookie": "REDACTED"}),
        ({"tags": ["call 0800", 3]}, {"tags": ["call ####", 3]}),
        ({"user": {"password": "abc", "age": 30}}, {"user": {"password": "REDACTED", "age": 30}}),
        ({"input.value": '{"password": "abc", "n": 30}'}, {"input.value": '{"password": "REDACTED", "n": 30}'}),
        ({"output.value": '{"n":  30}'}, {"output.value": '{"n":  30}'}),
    ],
)
def test_words_are_clean_wherever_they_stand(attributes: dict[str, Any], expected: dict[str, Any]) -> None:
    assert cleaned_span(replace(SPAN, attributes=attributes), DIGITS).attributes == expected


def test_name_and_message_are_clean() -> None:
    cleaned = cleaned_span(replace(SPAN, name=f"GET /{KEY}", message=f"no {KEY}"), Cleaner([KEY]))
    assert (cleaned.name, cleaned.message) == ("GET /REDACTED", "no REDACTED")


_texts = st.text(max_size=8).map(lambda text: f"{text}{KEY}")
_values = st.recursive(
    _texts | st.integers(0, 99) | _texts.map(lambda text: json.dumps({text: [text]})),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(_texts, _values, max_size=4))
def test_no_secret_is_left_in_any_attribute(attributes: dict[str, Any]) -> None:
    cleaned = cleaned_span(replace(SPAN, attributes=attributes), Cleaner([KEY]))
    assert KEY not in json.dumps(request_of([cleaned], "s"), ensure_ascii=False)


# Spans of a service come to the trial that they are of, fill what its reply does not say, and are recorded with it.

LAMP = Query("q1", "lamp")


@pytest.fixture(autouse=True)
def _one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    # These tests may be run by xdist themselves.
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)


def spec(service: TracingService, wait: float = 3, more: str = "", late: float = 0.05) -> str:
    where = f'url = "{service.url}"\ntraces = "otlp"\ntraces_port = {service.port}\n'
    more = f"traces_wait = {wait}\ntraces_late = {late}\n{more}"
    return f'{where}{more}[read]\nanswer = "answer"\n'


@pytest.mark.parametrize("form", ["json", "protobuf"])
def test_the_trace_fills_what_the_reply_does_not_say(form: str, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "lamp.md").write_text("# Lamps\n\nYou can return a lamp within 45 days of its delivery.\n")
    with tracing_service(form=form) as service:
        output = Service(tmp_path, spec(service)).ask(LAMP)
        assert service.headers[0]["traceparent"].endswith("-01")
    assert [stage.kind for stage in output.stages] == ["", "retrieve", "generate"]
    assert [hit.chunk.doc_id for hit in output.retrieved] == ["lamp.md"]
    assert [hit.chunk.doc_id for hit in output.context] == ["lamp.md"]
    assert output.answer.citations == (1,)
    # Tokens are those of the model's call, once.
    assert sum(call.usage.prompt_tokens for call in output.calls) == 30
    assert [call.usd for call in output.calls] == [0.0, None]
    assert output.total_ms == pytest.approx(sum(stage.ms for stage in output.stages), abs=6)
    assert len(output.trace_id) == 32


def test_what_the_reply_says_counts(tmp_path: Path) -> None:
    with tracing_service() as service:
        said = 'usd_per_call = 0.25\n[read]\nanswer = "answer"\n'
        output = Service(tmp_path, spec(service).replace('[read]\nanswer = "answer"\n', said)).ask(LAMP)
    assert [call.usd for call in output.calls] == [0.25, 0.0]
    # The reply tells no tokens, so those of the trace count.
    assert sum(call.usage.prompt_tokens for call in output.calls) == 30
    assert [stage.kind for stage in output.stages] == ["", "retrieve", "generate"]


def test_32_trials_at_once_late_and_out_of_order_get_their_own_spans(tmp_path: Path) -> None:
    queries = [Query(f"q{n}", f"thing{n}") for n in range(32)]
    with tracing_service(shuffled=True, delay=0.15) as service:
        outputs = Service(tmp_path, spec(service, 30, late=0.6), concurrency=32).ask_all(*queries)
    for query, output in zip(queries, outputs, strict=True):
        assert [stage.input for stage in output.stages if stage.kind == "retrieve"] == [query.text]
        assert [hit.chunk.chunk_id.rpartition(":")[2] for hit in output.retrieved] == [f"{query.text}.md"]


def test_a_replay_needs_neither_service_nor_receiver(tmp_path: Path) -> None:
    with tracing_service() as service:
        first = Service(tmp_path, spec(service), mode="record", profile="embedded").ask(LAMP)
        described = spec(service)
    with closing(socket.socket()) as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", service.port))
        again = Service(tmp_path, described, mode="replay", profile="embedded").ask(LAMP)
    assert again.retrieved == first.retrieved
    assert [replace(stage, calls=(), ms=0) for stage in again.stages] == [
        replace(stage, calls=(), ms=0) for stage in first.stages
    ]
    assert again.trace_id == first.trace_id


def test_an_answer_that_was_recorded_without_spans_is_asked_again_or_refused(tmp_path: Path) -> None:
    with tracing_service() as service:
        plain = f'url = "{service.url}"\n[read]\nanswer = "answer"\n'
        Service(tmp_path, plain, mode="record", profile="embedded").ask(LAMP)
        with pytest.raises(RecordingMissError, match="recorded without its spans"):
            Service(tmp_path, spec(service), mode="replay", profile="embedded").ask(LAMP)
        assert len(service.headers) == 1
        kept = Service(tmp_path, spec(service), mode="record", profile="embedded")
        assert not kept.pipeline.is_recorded(LAMP)
        assert kept.ask(LAMP).retrieved
        assert kept.pipeline.is_recorded(LAMP)
        assert len(service.headers) == 2


def test_secrets_reach_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "geheim-12345")

    def telling(query: str, traceparent: str) -> list[Any]:
        spans = spans_of(query, traceparent)
        return [replace(spans[0], attributes={**spans[0].attributes, "http.key": "geheim-12345"}), *spans[1:]]

    with tracing_service(spans=telling) as service:
        more = 'headers = { authorization = "${SHOP_KEY}" }\n'
        Service(tmp_path, spec(service, more=more), mode="record", profile="embedded").ask(LAMP)
    (file,) = tmp_path.rglob("*.spans.json")
    assert "geheim" not in file.read_text()
    assert json.loads(file.read_text())["resourceSpans"]


def _nothing(_query: str, _traceparent: str) -> list[Any]:
    return []


def _of_its_own(query: str, _traceparent: str) -> list[Any]:
    return spans_of(query, f"00-{'c' * 32}-{'d' * 16}-01")


def _without_first(query: str, traceparent: str) -> list[Any]:
    return spans_of(query, traceparent)[:2]


def _hidden(query: str, traceparent: str) -> list[Any]:
    search, *others = spans_of(query, traceparent)
    told = {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": "__REDACTED__"}
    return [replace(search, attributes=told), *others]


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        (_nothing, "No span of this trial came to .*OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),
        (_of_its_own, "3 spans of other traces did.*traceparent"),
        (_without_first, "Span 'search' came .* and the span around it did not within 0.2 s"),
        (_hidden, "OPENINFERENCE_HIDE"),
    ],
)
def test_what_does_not_come_is_an_error(spans: Any, said: str, tmp_path: Path) -> None:
    with tracing_service(spans=spans, before=True) as service, pytest.raises(TraceError, match=said):
        Service(tmp_path, spec(service, 0.2), mode="record", profile="embedded").ask(LAMP)
    # What has no spans is no recording.
    assert list(tmp_path.rglob("*.yaml")) == [] or spans is _hidden


def test_a_trace_that_is_still_coming_when_the_time_is_over_is_an_error(tmp_path: Path) -> None:
    def never_ending(query: str, traceparent: str) -> list[Any]:
        search, model, first = spans_of(query, traceparent)
        return [first, search, *(replace(model, span_id=f"{n + 1:016x}") for n in range(20))]

    with (
        tracing_service(spans=never_ending, one_by_one=0.1) as service,
        pytest.raises(TraceError, match=r"were still coming to .* 0\.9 s after the answer"),
    ):
        Service(tmp_path, spec(service, 0.9, late=0.6)).ask(LAMP)


def test_a_port_that_is_taken_stops_the_run_before_anything_is_asked(tmp_path: Path) -> None:
    with tracing_service() as service, closing(socket.socket()) as taken:
        taken.bind(("127.0.0.1", service.port))
        taken.listen()
        with pytest.raises(PrerequisiteError, match=f"port {service.port} of 127.0.0.1, which cannot be had"):
            Service(tmp_path, spec(service))
        assert service.headers == []


def test_several_processes_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    with tracing_service() as service:
        with pytest.raises(PrerequisiteError, match="-n 2 has several processes"):
            Service(tmp_path, spec(service))
        with pytest.raises(SettingsError, match="rag-engine=ray"):
            Service(tmp_path, spec(service), engine="ray")


@pytest.mark.parametrize(
    ("body", "headers", "path", "status"),
    [
        (b"\xff\xfe garbage", {"content-type": "application/x-protobuf"}, "/v1/traces", 400),
        (b"{", {"content-type": "application/json"}, "/v1/traces", 400),
        (b"[]", {}, "/v1/traces", 400),
        (b"{}", {"content-encoding": "br"}, "/v1/traces", 400),
        (b"no gzip", {"content-encoding": "gzip"}, "/v1/traces", 400),
        (b"{}", {}, "/", 404),
        (b'{"resourceSpans": []}', {"content-type": "application/json"}, "/v1/traces", 200),
    ],
)
def test_garbage_is_refused_and_told_to_who_waits(
    body: bytes, headers: dict[str, str], path: str, status: int, tmp_path: Path
) -> None:
    with tracing_service(spans=_nothing) as service:
        asked = Service(tmp_path, spec(service, 0.1))
        assert service.post(body, headers, path) == status
        said = "What came could not be read" if status == 400 else "No span of this trial came"
        with pytest.raises(TraceError, match=said):
            asked.ask(LAMP)


def test_a_request_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rag_harness.pipelines.endpoint import spans as span_server

    monkeypatch.setattr(span_server, "LARGEST_REQUEST", 1000)
    with tracing_service() as service:
        Service(tmp_path, spec(service))
        assert service.post(b"x" * 1001, {}) == 413
        import gzip

        assert service.post(gzip.compress(b" " * 100_000), {"content-encoding": "gzip"}) == 400


@pytest.mark.parametrize(
    ("toml", "said"),
    [
        ('traces = "jaeger"', "traces.*jaeger.*otlp"),
        ("traces_port = 4318", 'nothing says traces = "otlp"'),
        ('traces = "otlp"\ntraces_port = 1.5', "traces_port is 1.5"),
        ('traces = "otlp"\ntraces_wait = 2\ntraces_late = 2', "traces_late = 2 is not less than traces_wait = 2"),
        ('traces = "otlp"\ntraces_late = 7', "traces_late = 7 is not less than traces_wait = 6"),
        ('traces = "otlp"\ntraces_wait = 0.5', "traces_late = 0.5 is not less than traces_wait = 0.5"),
    ],
)
def test_what_the_description_cannot_say_is_named(toml: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(f'url = "http://127.0.0.1:1/"\n{toml}\n')
    with pytest.raises(SettingsError, match=said):
        read_endpoints(tmp_path, ["s.toml"])


def test_a_scrub_of_numbers_changes_no_time_and_no_token(tmp_path: Path) -> None:
    with tracing_service() as service:
        asked = Service(tmp_path, spec(service), scrub=lambda text: re.sub("[0-9]+", "#", text), mode="record")
        made = asked.ask(LAMP)
    assert [round(stage.ms) for stage in made.stages[1:]] == [2, 3]
    assert sum(call.usage.prompt_tokens for call in made.calls) == 30
    assert [hit.chunk.text for hit in made.context] == ["You can return a lamp within # days of its delivery."]


def test_an_answer_that_is_recorded_anew_without_spans_has_none_of_the_old(tmp_path: Path) -> None:
    with tracing_service() as service:
        Service(tmp_path, spec(service), mode="record", profile="embedded").ask(LAMP)
        assert list(tmp_path.rglob("*.spans.json"))
        plain = f'url = "{service.url}"\n[read]\nanswer = "answer"\n'
        Service(tmp_path, plain, mode="record", profile="embedded", rerecord=True).ask(LAMP)
        assert len(service.headers) == 2
    assert list(tmp_path.rglob("*.spans.json")) == []
    assert list(tmp_path.rglob("*.yaml"))
