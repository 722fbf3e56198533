"""Reads the spans of a request of OTLP in protobuf, which most exporters send. Needs the extra ``traces``."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from typing import Any

from rag_harness.errors import PrerequisiteError, TraceError
from rag_harness.registry.installed import install
from rag_harness.traces.otlp.otlp_json import spans_of_request
from rag_harness.traces.span_record import SpanRecord

_IDS = ("traceId", "spanId", "parentSpanId")


def spans_of_protobuf(body: bytes) -> Iterator[SpanRecord]:
    """Yield the spans of a request.

    Raises:
        PrerequisiteError: the protocol's messages are not installed.
        TraceError: the body is none, or a span of it has no ids.
    """
    try:
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    except ImportError as error:
        raise PrerequisiteError(
            f"OTLP in protobuf cannot be read: {error.name} is not installed. {install('traces')}"
        ) from error
    try:
        said: dict[str, Any] = MessageToDict(ExportTraceServiceRequest.FromString(body))
    except (DecodeError, RecursionError, ValueError) as error:
        raise TraceError(f"{len(body):,} bytes are no protobuf of OTLP.") from error
    for resource in said.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                # protobuf's own JSON has bytes in base 64; OTLP/JSON has ids in hexadecimal digits.
                for each in (span, *span.get("links", ())):
                    each.update({name: b64decode(each[name]).hex() for name in _IDS if name in each})
    return spans_of_request({"resourceSpans": [], **said})
