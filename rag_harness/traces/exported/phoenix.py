"""Spans as Phoenix exports them: its HTTP interface and client (nested), and a data frame of them (flat names).

https://arize.com/docs/phoenix/tracing/how-to-tracing/importing-and-exporting-traces
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.errors import TraceError
from rag_harness.traces.exported.nested_values import flat_attributes, nanoseconds
from rag_harness.traces.span_record import SpanEvent, SpanRecord


def is_phoenix(said: Mapping[str, Any]) -> bool:
    """Return whether an object is a span of Phoenix, or a page of them."""
    pages = said.get("data")
    if isinstance(pages, list) and pages and isinstance(pages[0], Mapping):
        return is_phoenix(pages[0])
    return "context.trace_id" in said or (isinstance(said.get("context"), Mapping) and "span_kind" in said)


def spans_of_phoenix(said: Mapping[str, Any]) -> Iterator[SpanRecord]:
    """Yield the spans of an object.

    Raises:
        TraceError: a span has no ids.
    """
    if isinstance(said.get("data"), list):
        for each in said["data"]:
            yield from spans_of_phoenix(each) if isinstance(each, Mapping) else ()
        return
    flat = dict(flat_attributes(said))
    name = str(said.get("name", ""))
    trace_id, span_id = (str(flat.get(f"context.{key}") or "") for key in ("trace_id", "span_id"))
    if not trace_id or not span_id:
        raise TraceError(f"Span {name[:100]!r} of Phoenix has no context.trace_id or no context.span_id.")
    attributes = {
        key.removeprefix("attributes."): value for key, value in flat.items() if key.startswith("attributes.")
    }
    attributes.setdefault("openinference.span.kind", str(said.get("span_kind") or ""))
    failed = str(said.get("status_code", "")).upper() == "ERROR"
    yield SpanRecord(
        name,
        trace_id,
        span_id,
        str(said.get("parent_id") or ""),
        nanoseconds(said.get("start_time")),
        nanoseconds(said.get("end_time")),
        attributes,
        tuple(_events(said.get("events"))),
        failed=failed,
        message=str(said.get("status_message") or ""),
    )


def _events(said: Any) -> Iterator[SpanEvent]:
    for each in said if isinstance(said, list) else ():
        if isinstance(each, Mapping):
            about = each.get("attributes")
            attributes = dict(flat_attributes(about)) if isinstance(about, Mapping) else {}
            yield SpanEvent(str(each.get("name", "")), nanoseconds(each.get("timestamp")), attributes)
