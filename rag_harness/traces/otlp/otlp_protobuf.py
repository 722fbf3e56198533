"""Reads and writes requests of OTLP in protobuf, which most exporters send. Needs the extra ``traces``."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
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
    with _messages():
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    try:
        said: dict[str, Any] = MessageToDict(ExportTraceServiceRequest.FromString(body))
    except (DecodeError, RecursionError, ValueError) as error:
        raise TraceError(f"{len(body):,} bytes are no protobuf of OTLP.") from error
    # protobuf's own JSON has bytes in base 64; OTLP/JSON has ids in hexadecimal digits.
    _with_ids(said, lambda found: b64decode(found).hex())
    return spans_of_request({"resourceSpans": [], **said})


def protobuf_of(request: Mapping[str, Any]) -> bytes:
    """Return a request of OTLP/JSON as protobuf.

    Raises:
        PrerequisiteError: the protocol's messages are not installed.
    """
    with _messages():
        from google.protobuf.json_format import ParseDict
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    said = deepcopy(dict(request))
    _with_ids(said, lambda found: b64encode(bytes.fromhex(found)).decode())
    body: bytes = ParseDict(said, ExportTraceServiceRequest()).SerializeToString()
    return body


def said_of_protobuf(reply: bytes) -> dict[str, Any] | None:
    """Return what a backend says to a request in protobuf, as OTLP/JSON has it; None where that is no protobuf."""
    with _messages():
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
    try:
        said: dict[str, Any] = MessageToDict(ExportTraceServiceResponse.FromString(reply))
    except (DecodeError, RecursionError, ValueError):
        return None
    return said


@contextmanager
def _messages() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise PrerequisiteError(
            f"OTLP in protobuf needs {error.name}, which is not installed. {install('traces')}"
        ) from error


def _with_ids(said: Mapping[str, Any], written: Callable[[str], str]) -> None:
    """Write the ids of all spans in another way, in place."""
    for resource in said.get("resourceSpans", []):
        for scope in resource.get("scopeSpans", []):
            for span in scope.get("spans", []):
                span.update({name: written(span[name]) for name in _IDS if name in span})
