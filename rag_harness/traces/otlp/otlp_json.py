"""Reads the spans of a request of OTLP/JSON: one object with ``resourceSpans``; ids in hexadecimal digits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.errors import TraceError
from rag_harness.traces.span_record import SpanEvent, SpanRecord

_TRACE_ID = re.compile(r"(?!0{32})[0-9a-f]{32}")
_SPAN_ID = re.compile(r"(?!0{16})[0-9a-f]{16}")
_DEEPEST = 20
"""How deep a value may lie in others."""
_MOST_DIGITS = 20
"""Digits of a whole number of 64 bits."""
_FAILED = (2, "STATUS_CODE_ERROR")


def spans_of_request(request: Any) -> Iterator[SpanRecord]:
    """Yield the spans of a request, in its order.

    Raises:
        TraceError: it is no request of OTLP, or a span of it has no ids.
    """
    if not isinstance(request, Mapping) or not isinstance(request.get("resourceSpans"), list):
        raise TraceError("This is no OTLP/JSON: it is no object with a list resourceSpans.")
    for resource in _objects(request, "resourceSpans"):
        # Before 1.0 scopes were called instrumentation libraries.
        for scope in [*_objects(resource, "scopeSpans"), *_objects(resource, "instrumentationLibrarySpans")]:
            yield from map(_span, _objects(scope, "spans"))


def _span(said: Mapping[str, Any]) -> SpanRecord:
    name = str(said.get("name", ""))
    status = said.get("status")
    status = status if isinstance(status, Mapping) else {}
    return SpanRecord(
        name,
        _id(said, "traceId", _TRACE_ID, name),
        _id(said, "spanId", _SPAN_ID, name),
        str(said.get("parentSpanId") or "").lower(),
        _whole(said.get("startTimeUnixNano")),
        _whole(said.get("endTimeUnixNano")),
        _attributes(said),
        tuple(
            SpanEvent(str(event.get("name", "")), _whole(event.get("timeUnixNano")), _attributes(event))
            for event in _objects(said, "events")
        ),
        _whole(said.get("droppedAttributesCount")),
        status.get("code") in _FAILED,
        str(status.get("message", "")),
        _whole(said.get("droppedEventsCount")),
    )


def _id(said: Mapping[str, Any], name: str, pattern: re.Pattern[str], span: str) -> str:
    found = str(said.get(name) or "").lower()
    if not pattern.fullmatch(found):
        digits = 32 if pattern is _TRACE_ID else 16
        told = f"is {found[:50]!r}" if found else "is missing"
        raise TraceError(f"{name} of span {span[:100]!r} {told}; it takes {digits} hexadecimal digits, not all 0.")
    return found


def _whole(value: Any) -> int:
    """Return a whole number of 64 bits, which JSON may have as a text; 0 where it is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= _MOST_DIGITS:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64 else 0


def _objects(said: Any, name: str) -> list[Mapping[str, Any]]:
    found = said.get(name) if isinstance(said, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _attributes(said: Mapping[str, Any]) -> dict[str, Any]:
    return {str(each.get("key")): _value(each.get("value")) for each in _objects(said, "attributes")}


def _value(said: Any, depth: int = 0) -> Any:
    if not isinstance(said, Mapping) or depth > _DEEPEST:
        return None
    if "intValue" in said:
        # Whole numbers are texts, for JavaScript has none of 64 bits.
        value = said["intValue"]
        return int(value) if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,20}", value) else value
    if "arrayValue" in said:
        return [_value(each, depth + 1) for each in _objects(said["arrayValue"], "values")]
    if "kvlistValue" in said:
        pairs = _objects(said["kvlistValue"], "values")
        return {str(each.get("key")): _value(each.get("value"), depth + 1) for each in pairs}
    return next((said[key] for key in ("stringValue", "boolValue", "doubleValue", "bytesValue") if key in said), None)
