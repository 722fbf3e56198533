"""Files of traces and OTLP are read alike, and what is no trace is named."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from rag_harness.core.errors import DataError, TraceError
from rag_harness.pipelines.endpoint.answer import Placing
from rag_harness.pipelines.otel import files
from rag_harness.pipelines.otel.files import TraceFile, nanoseconds
from rag_harness.pipelines.otel.in_process import record_of
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, request_of, spans_of_protobuf, spans_of_request
from rag_harness.pipelines.otel.steps import read_trace
from rag_harness.pipelines.traced_app import kept_trace
from tests.examples.traced.did import told as did_told
from tests.unit.pipelines.otel.exported.files import BEGIN, LAMP, QUESTION, RUG, SAID, langfuse, otlp, phoenix, written

# Traces of three tools' files are read alike; what is no trace is named with its line; no file fills the memory.

PLACING = Placing(lambda: (), "traces", "search")
FORMS: dict[str, list[Any]] = {
    "otlp": [otlp(1)],
    "phoenix, a span a line": phoenix(),
    "phoenix, a list": [phoenix()],
    "phoenix, a page": [{"data": phoenix(), "next_cursor": None}],
    "langfuse, a trace": [langfuse()],
    "langfuse, an observation a line": [
        {"id": "root", "traceId": "lf-1", "type": "SPAN", "name": "shop", "startTime": "2023-11-14T22:13:20Z",
         "endTime": "2023-11-14T22:13:20.1Z", "input": QUESTION, "output": SAID},
        *({**each, "parentObservationId": "root"} for each in langfuse()["observations"]),
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", FORMS.values(), ids=FORMS)
def test_a_trace_is_the_same_whoever_has_exported_it(lines: list[Any], tmp_path: Path) -> None:
    ((_, spans),) = TraceFile(written(tmp_path / "t.jsonl", *lines)).traces()
    trace = kept_trace(spans)
    assert (trace.question, trace.answer, trace.began_ns, trace.failed) == (QUESTION, SAID, BEGIN, False)
    output = trace.output(PLACING)
    assert [stage.kind for stage in output.stages] == ["retrieve", "generate"]
    assert [round(stage.ms) for stage in output.stages] == [20, 60]
    assert [hit.chunk.text for hit in output.retrieved] == [LAMP, RUG]
    assert [hit.chunk.text for hit in output.context] == [LAMP]
    (call,) = output.calls
    assert (call.model, call.usage.prompt_tokens) == ("gpt-4o-mini", 30)
    assert output.answer.citations == (1,)
    assert output.total_ms == pytest.approx(100, abs=20)


def test_spans_of_traces_that_stand_mixed_come_to_their_own(tmp_path: Path) -> None:
    one, two = phoenix(1), phoenix(2)
    both = [span for pair in zip(one, two, strict=True) for span in reversed(pair)]
    traces = dict(TraceFile(written(tmp_path / "t.jsonl", *both, otlp(3), *one)).traces())
    assert [len(spans) for spans in traces.values()] == [3, 3, 3]
    assert all({span.trace_id for span in spans} == {trace_id} for trace_id, spans in traces.items())


def test_a_byte_order_mark_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(otlp()).encode() + b"\r\n\n  \n")
    assert len(list(TraceFile(file).traces())) == 1


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "holds no span"),
        (["{'a': 1}"], "t.jsonl:1: This is not JSON"),
        (["[", " 1]"], "t.jsonl:1: A int is not a span"),
        ([json.dumps(otlp(), indent=1)[:900]], "t.jsonl:1: This is not JSON"),
        ([json.dumps(otlp(), indent=1)[:900]], "Was the file cut short?"),
        ([json.dumps(otlp(1), indent=1), "[\n1 2\n]"], ": This is not JSON"),
        ([otlp(), "nonsense"], "t.jsonl:2: This is not JSON"),
        ([{"question": "q", "answer": "a"}], "t.jsonl:1: A dict with 'question', 'answer' is not a span that is known"),
        ([[1]], "A int is not a span"),
        (["NaN"], "not a span"),
        ([{**phoenix()[0], "context": {"trace_id": "a"}}], "context.span_id"),
        ([{**langfuse()["observations"][0], "traceId": None}], "has no traceId"),
        ([{**langfuse(), "observations": ["a", "b"]}], "names its observations and does not have them"),
        ([{"resourceSpans": [{"scopeSpans": [{"spans": [{"name": "s"}]}]}]}], "traceId of span 's' is missing"),
    ],
)
def test_what_is_no_trace_is_named_with_its_line(lines: list[Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        TraceFile(written(tmp_path / "t.jsonl", *lines))
    assert said in str(raised.value)


@pytest.mark.parametrize("indent", [0, 2])
@pytest.mark.parametrize(
    "values", [[otlp(1)], [[otlp(1), otlp(2)]], [otlp(1), otlp(2)], [phoenix()], [{"data": phoenix()}], [langfuse()]]
)
def test_values_over_several_lines_are_those_of_one_line(tmp_path: Path, values: list[Any], indent: int) -> None:
    # A blank line inside a value, and a mark before the first, must not shift the place of those behind.
    long = ["\n\n".join(json.dumps(each, indent=indent).rsplit("\n", 1)) for each in values]
    (tmp_path / "long.json").write_bytes(b"\xef\xbb\xbf" + "\n\n".join(long).encode())
    short = TraceFile(written(tmp_path / "short.jsonl", *values))
    assert list(TraceFile(tmp_path / "long.json").traces()) == list(short.traces())


def test_a_page_of_observations_of_langfuse_is_its_observations(tmp_path: Path) -> None:
    (lines,) = [lines for name, lines in FORMS.items() if name == "langfuse, an observation a line"]
    page = TraceFile(written(tmp_path / "page.json", {"data": lines, "meta": {"page": 1}}))
    assert list(page.traces()) == list(TraceFile(written(tmp_path / "t.jsonl", *lines)).traces())


def test_many_bad_lines_are_not_all_listed(tmp_path: Path) -> None:
    with pytest.raises(DataError) as raised:
        TraceFile(written(tmp_path / "t.jsonl", *["nonsense"] * 500))
    assert len(str(raised.value).splitlines()) == 21


def test_no_file_and_a_line_too_long_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="cannot be read"):
        TraceFile(tmp_path / "gone.jsonl")
    monkeypatch.setattr(files, "LONGEST_LINE", 2**20)
    with pytest.raises(DataError, match="longer than 1 MiB"):
        TraceFile(written(tmp_path / "t.jsonl", "x" * (2**20 + 1)))
    with pytest.raises(DataError, match=r"t.jsonl:1: the value is longer than 1 MiB"):
        TraceFile(written(tmp_path / "t.jsonl", "[", *["1,"] * 400_000, "1]"))


def test_memory_does_not_grow_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_AT_ONCE", 60)

    def peak(traces: int) -> int:
        file = written(tmp_path / "t.jsonl", *(otlp(n + 1) for n in range(traces)))
        tracemalloc.start()
        found = sum(len(spans) for _, spans in TraceFile(file).traces())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert found == traces * 3
        return most

    few, many = peak(50), peak(500)
    # Of each trace its id is kept, and where the lines of its spans begin.
    assert many - few < 450 * 1000


def test_a_line_of_many_traces_is_not_read_for_each_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    requests = [otlp(n + 1) for n in range(300)]
    spans = [request["resourceSpans"][0]["scopeSpans"][0]["spans"] for request in requests]
    # Each line has a span of every trace.
    lines = [{"resourceSpans": [{"scopeSpans": [{"spans": list(each)}]}]} for each in zip(*spans, strict=True)]
    parsed: list[int] = []

    def counted(text: str) -> Any:
        parsed.append(len(text))
        return json.loads(text)

    monkeypatch.setattr(files, "read_json", counted)
    traces = list(TraceFile(written(tmp_path / "t.jsonl", *lines)).traces())
    assert [len(found) for _, found in traces] == [3] * 300
    assert len(parsed) == 7  # the first line also tells the format


def test_a_line_with_all_traces_is_read_twice_however_many_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_AT_ONCE", 10)
    spans = [otlp(n + 1)["resourceSpans"][0]["scopeSpans"][0]["spans"] for n in range(300)]
    parsed: list[int] = []

    def counted(text: str) -> Any:
        parsed.append(len(text))
        return json.loads(text)

    monkeypatch.setattr(files, "read_json", counted)
    whole = {"resourceSpans": [{"scopeSpans": [{"spans": [span for each in spans for span in each]}]}]}
    assert len(list(TraceFile(written(tmp_path / "t.jsonl", whole)).traces())) == 300
    assert len(parsed) == 3  # once more to tell the format


@given(st.lists(st.text(max_size=40) | st.sampled_from([json.dumps(otlp()), json.dumps(phoenix()[0])]), max_size=4))
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    file = tmp_path_factory.mktemp("any") / "t.jsonl"
    file.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    try:
        traces = list(TraceFile(file).traces())
    except DataError:
        return
    assert traces


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2023-11-14T22:13:20Z", BEGIN), ("2023-11-14 22:13:20", BEGIN), ("2023-11-14T22:13:20.5Z", BEGIN + 5 * 10**8),
        ("2023-11-14T22:13:20.000001999Z", BEGIN + 1000), ("2023-11-14T23:13:20+01:00", BEGIN),
        (1_700_000_000, BEGIN), (1_700_000_000_000, BEGIN), (BEGIN, BEGIN), (1_700_000_000.5, BEGIN + 5 * 10**8),
        (10**400, 0),
        ("yesterday", 0), (None, 0), (True, 0), (-1, 0), (float("nan"), 0), (float("inf"), 0), ("0001-01-01", 0),
    ],
)  # fmt: skip
def test_times_of_any_form_are_nanoseconds(value: Any, expected: int) -> None:
    assert nanoseconds(value) == expected


# OTLP is read as the SDK's own exporter writes it, in both of its forms, and garbage is an error with its reason.


def of_the_sdk() -> list[Any]:
    """Spans with all that a span may have."""
    kept, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("outer") as outer, tracer.start_as_current_span("inner") as inner:
        inner.set_attributes({"text": "ä\n", "whole": -3, "part": 0.5, "yes": True, "many": ["a", "b"]})
        inner.add_event("seen", {"n": 1})
        inner.add_link(outer.get_span_context())
        inner.set_status(Status(StatusCode.ERROR, "no connection"))
    return list(kept.get_finished_spans())


def told(spans: Any) -> list[SpanRecord]:
    """Spans with lists in place of tuples."""
    return [
        SpanRecord(
            *(span.name, span.trace_id, span.span_id, span.parent_id, span.start_ns, span.end_ns),
            {key: list(value) if isinstance(value, tuple) else value for key, value in span.attributes.items()},
            *(span.events, span.dropped, span.failed, span.message, span.dropped_events),
        )
        for span in spans
    ]


def test_protobuf_of_the_sdk_is_what_the_sdk_has() -> None:
    spans = of_the_sdk()
    body = encode_spans(spans).SerializeToString()
    assert told(spans_of_protobuf(body)) == told(map(record_of, spans))


def test_what_is_written_is_read_as_it_was() -> None:
    spans = told(map(record_of, of_the_sdk()))
    assert list(spans_of_request(json.loads(json.dumps(request_of(spans, "app"))))) == spans


@pytest.mark.parametrize("value", [10**400, 2**64, str(2**64), -1, "9" * 400, 1.5, None])
def test_a_time_of_more_than_64_bits_is_none(value: Any) -> None:
    said = {"traceId": "1" * 32, "spanId": "2" * 16, "startTimeUnixNano": value, "endTimeUnixNano": value}
    (span,) = spans_of_request({"resourceSpans": [{"scopeSpans": [{"spans": [said]}]}]})
    assert (span.start_ns, span.end_ns, span.ms) == (0, 0, 0)


def test_what_is_written_is_otlp_by_its_own_messages() -> None:
    from google.protobuf.json_format import Parse
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    text = json.dumps(request_of(map(record_of, of_the_sdk()), "app"))
    message = Parse(text, ExportTraceServiceRequest())
    assert [span.name for span in message.resource_spans[0].scope_spans[0].spans] == ["inner", "outer"]


@given(
    st.dictionaries(
        st.text(max_size=20),
        st.recursive(
            st.text() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=6,
        ),
        max_size=5,
    )
)
def test_any_attribute_survives(attributes: dict[str, Any]) -> None:
    span = SpanRecord("s", "a" * 32, "b" * 16, attributes=attributes, events=(SpanEvent("e", 5, attributes),))
    assert list(spans_of_request(json.loads(json.dumps(request_of([span], "app"))))) == [span]


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ([], "is not OTLP/JSON"),
        ({"spans": []}, "is not OTLP/JSON"),
        ({"resourceSpans": {}}, "is not OTLP/JSON"),
        (("name", "s"), "is not OTLP/JSON"),
        ({"name": "s", "spanId": "b" * 16}, "traceId of span 's' is missing"),
        ({"name": "s", "traceId": "a" * 32}, "spanId of span 's' is missing"),
        ({"name": "s", "traceId": "0" * 32, "spanId": "b" * 16}, "not all 0"),
        ({"name": "s", "traceId": "AAAA", "spanId": "b" * 16}, "is 'aaaa'; it takes 32"),
    ],
)
def test_what_is_no_span_is_named(request_: Any, said: str) -> None:
    is_span = isinstance(request_, dict) and "name" in request_
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [request_]}]}]} if is_span else request_
    with pytest.raises(TraceError, match=said):
        list(spans_of_request(request))


@given(st.binary(max_size=300))
def test_garbage_is_no_protobuf_or_has_no_span(body: bytes) -> None:
    try:
        found = list(spans_of_protobuf(body))
    except TraceError:
        return
    assert all(span.trace_id for span in found)


_NAMES = st.sampled_from(
    ["attributes", "events", "key", "value", "arrayValue", "kvlistValue", "values", "intValue", "links", "status"]
)


@example([{"value": {"arrayValue": 1}}])
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
        max_leaves=30,
    )
)
def test_any_json_is_read_or_refused(said: Any) -> None:
    span = {"traceId": "a" * 32, "spanId": "b" * 16, **(said if isinstance(said, dict) else {"attributes": said})}
    (found,) = spans_of_request({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})
    assert found.span_id == "b" * 16


# Spans of real frameworks, kept in files, tell what the app really did: searches, hits, ids, scores, calls, tools.

KEPT = sorted((Path(__file__).parent / "kept").glob("*.jsonl"))
LINES = [(file.stem, json.loads(line)) for file in KEPT for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("framework", "line"), LINES, ids=[f"{name}-{line['shape']}" for name, line in LINES])
def test_a_kept_trace_tells_what_the_app_did(framework: str, line: dict[str, Any]) -> None:
    seen = read_trace(list(spans_of_request(line["spans"])), line["said"])
    assert did_told(seen, line["did"]["given"] is not None) == line["did"]


def test_three_frameworks_are_kept_in_ten_shapes_each() -> None:
    assert {name: sum(name == other for other, _ in LINES) for name, _ in LINES} == {
        "haystack": 10,
        "langchain": 10,
        "llamaindex": 10,
    }
