"""OTLP is read as the SDK's own exporter writes it, in both of its forms, and garbage is an error with its reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Status, StatusCode

from rag_harness.core.errors import TraceError
from rag_harness.pipelines.otel.in_process import record_of
from rag_harness.pipelines.otel.spans import SpanEvent, SpanRecord, request_of, spans_of_protobuf, spans_of_request


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
        ([], "is no OTLP/JSON"),
        ({"spans": []}, "is no OTLP/JSON"),
        ({"resourceSpans": {}}, "is no OTLP/JSON"),
        (("name", "s"), "is no OTLP/JSON"),
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
