"""Writes spans as a request of OTLP/JSON, which any collector takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rag_harness.traces.span_record import SpanRecord


def request_of(spans: Iterable[SpanRecord], service: str) -> dict[str, Any]:
    """Return spans as one request. ``service`` is the name of the service that they are said to be of."""
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs({"service.name": service})},
                "scopeSpans": [{"scope": {"name": "rag_harness"}, "spans": [_written(span) for span in spans]}],
            }
        ]
    }


def _written(span: SpanRecord) -> dict[str, Any]:
    said: dict[str, Any] = {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "kind": 1,
        "startTimeUnixNano": str(span.start_ns),
        "endTimeUnixNano": str(span.end_ns),
        "attributes": _pairs(span.attributes),
        "droppedAttributesCount": span.dropped,
        "droppedEventsCount": span.dropped_events,
        "events": [
            {"timeUnixNano": str(event.at_ns), "name": event.name, "attributes": _pairs(event.attributes)}
            for event in span.events
        ],
        "status": {"code": 2, "message": span.message} if span.failed else {},
    }
    return {name: value for name, value in said.items() if value not in ("", [], {}) and value != 0}


def _pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in attributes.items()]


def _value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _pairs(value)}}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {} if value is None else {"stringValue": str(value)}
