"""Spans as plain values, their kinds and their tree, and requests of OpenTelemetry's protocol (OTLP).

Read and written.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from rag_harness.core.errors import PrerequisiteError, TraceError
from rag_harness.core.json_text import read_json
from rag_harness.core.package import install

# A span as plain values, from any sender: the SDK in this process, a service over HTTP, a file.


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened during a span, at a time in nanoseconds since 1970."""

    name: str
    at_ns: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span that has ended.

    Attributes:
        name: its name.
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_id: the span around it; empty where there is none.
        start_ns: when it began, in nanoseconds since 1970.
        end_ns: when it ended.
        attributes: its values by name: texts, numbers, truth values, and lists of them.
        events: what happened during it, in order.
        dropped: attributes that its SDK has thrown away.
        failed: whether its status is an error.
        message: what its status says.
        dropped_events: events that its SDK has thrown away.
    """

    name: str
    trace_id: str
    span_id: str
    parent_id: str = ""
    start_ns: int = 0
    end_ns: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    dropped: int = 0
    failed: bool = False
    message: str = ""
    dropped_events: int = 0

    @property
    def ms(self) -> float:
        """How long it took, in milliseconds; 0 where its times are in the wrong order."""
        return max(self.end_ns - self.start_ns, 0) / 1e6


# What a span says that it is, by OpenInference's convention or by OpenTelemetry's for generative AI.
#
# https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
# https://github.com/open-telemetry/semantic-conventions-genai

SpanKind: TypeAlias = Literal["", "retriever", "reranker", "llm", "embedding", "tool", "guardrail", "prompt", "other"]
"""Empty: the span follows neither convention. ``other``: it does, and is not a step of its own (a chain, an agent)."""

_OPENINFERENCE: Mapping[str, SpanKind] = {
    "RETRIEVER": "retriever",
    "RERANKER": "reranker",
    "LLM": "llm",
    "EMBEDDING": "embedding",
    "TOOL": "tool",
    "GUARDRAIL": "guardrail",
    "PROMPT": "prompt",
}
_GENAI: Mapping[str, SpanKind] = {
    "retrieval": "retriever",
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "embeddings": "embedding",
    "execute_tool": "tool",
}
_RERANKS = ("rerank", "reranking")
"""The convention has no such operation; some instrumentations name theirs so."""
TELLS_WORK: frozenset[SpanKind] = frozenset({"retriever", "reranker", "llm", "tool"})
"""Kinds of spans without which a row would be another."""


def kind_of(span: SpanRecord) -> SpanKind:
    """Return the kind that a span states."""
    return kind_in(span.attributes)


def kind_in(attributes: Mapping[str, Any]) -> SpanKind:
    """Return the kind that a span with these attributes states."""
    said = attributes.get("openinference.span.kind")
    if isinstance(said, str) and said:
        return _OPENINFERENCE.get(said.upper(), "other")
    operation = str(attributes.get("gen_ai.operation.name", "")).lower()
    if operation:
        return "reranker" if operation in _RERANKS else _GENAI.get(operation, "other")
    if "gen_ai.retrieval.documents" in attributes:
        return "retriever"
    # Before 1.28 a span of a model had no operation.
    has_model = "gen_ai.request.model" in attributes or "gen_ai.response.model" in attributes
    return "llm" if has_model and ("gen_ai.system" in attributes or "gen_ai.provider.name" in attributes) else ""


class SpanTree:
    """Spans with the spans around each.

    A span whose parent is not among them is at the top. Spans that come twice count once. Of spans that are each
    other's parents, which only a damaged file has, one is at the top.

    Args:
        spans: the spans of one trace, in any order.

    Attributes:
        spans: in the order in which they began.
        outermost_first: in an order in which each comes after the span around it, whatever their clocks say.
        parents: the span around each that is not at the top, by the id of the inner one.
    """

    def __init__(self, spans: Iterable[SpanRecord]) -> None:
        known = {span.span_id: span for span in spans}
        self.parents: dict[str, SpanRecord] = {}
        depths = self._walk(known)
        self.outermost_first: Sequence[SpanRecord] = [known[key] for key in depths]
        self.spans: Sequence[SpanRecord] = sorted(
            known.values(), key=lambda span: (span.start_ns, depths[span.span_id], span.span_id)
        )

    def _walk(self, known: Mapping[str, SpanRecord]) -> dict[str, int]:
        """Fill ``parents`` and return the depth of each span by its id, a parent before its children."""
        children: dict[str, list[SpanRecord]] = {}
        for span in known.values():
            children.setdefault(span.parent_id, []).append(span)
        depths: dict[str, int] = {}
        tops = [span for span in known.values() if span.parent_id not in known]
        # The second pass reaches spans that are each other's parents.
        for top in (*tops, *known.values()):
            level = [top] if top.span_id not in depths else []
            depths.setdefault(top.span_id, 0)
            while level:
                level = [child for span in level for child in self._entered(span, children, depths)]
        return depths

    def _entered(
        self, span: SpanRecord, children: Mapping[str, Sequence[SpanRecord]], depths: dict[str, int]
    ) -> Sequence[SpanRecord]:
        new = [child for child in children.get(span.span_id, ()) if child.span_id not in depths]
        for child in new:
            self.parents[child.span_id] = span
            depths[child.span_id] = depths[span.span_id] + 1
        return new

    def nearest(self, among: Collection[str]) -> dict[str, SpanRecord]:
        """Return the nearest span around each span whose id is among these, by the id of the inner one."""
        found: dict[str, SpanRecord] = {}
        for span in self.outermost_first:
            around = self.parents.get(span.span_id)
            if around is not None and around.span_id in among:
                found[span.span_id] = around
            elif around is not None and around.span_id in found:
                found[span.span_id] = found[around.span_id]
        return found


def own_ms(spans: Sequence[SpanRecord], tree: SpanTree) -> list[float]:
    """Return the milliseconds of each span without those of the spans inside of it, as far as these are listed, too.

    Of spans inside that ran at the same time, the time counts once.
    """
    around = tree.nearest({span.span_id for span in spans})
    inside: dict[str, list[SpanRecord]] = {}
    for span in spans:
        if span.span_id in around:
            inside.setdefault(around[span.span_id].span_id, []).append(span)
    return [max(span.ms - covered_ms(inside.get(span.span_id, ()), within=span), 0.0) for span in spans]


def covered_ms(spans: Iterable[SpanRecord], within: SpanRecord) -> float:
    """Return during how many milliseconds of ``within`` at least one of the spans ran."""
    covered, until = 0, within.start_ns
    for start, end in sorted((span.start_ns, span.end_ns) for span in spans):
        begin, stop = max(start, until), min(end, within.end_ns)
        covered += max(stop - begin, 0)
        until = max(until, stop)
    return covered / 1e6


# Lists of objects in flat attributes, as OpenInference writes them: ``retrieval.documents.0.document.id``.

REDACTED = "__REDACTED__"
"""What OpenInference puts where content is hidden."""


def flat_list(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """Return the items below ``prefix``, in the order of their numbers, each with its keys below the number.

    ``flat_list({"a.10.x": 1, "a.2.y.z": 2}, "a")`` is ``[{"y.z": 2}, {"x": 1}]``. Numbers may have gaps.
    """
    found: dict[int, dict[str, Any]] = {}
    begin = f"{prefix}."
    for name, value in attributes.items():
        if name.startswith(begin):
            number, _, key = name[len(begin) :].partition(".")
            if number.isdecimal() and number.isascii() and len(number) < 10:
                found.setdefault(int(number), {})[key] = value
    return [found[number] for number in sorted(found)]


def structured(value: Any) -> Any:
    """Return the value of a JSON text. Other values, and texts that are not JSON, are returned as they are."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return read_json(value)
    except ValueError:
        return value


def is_hidden(value: Any) -> bool:
    """Return whether content was taken out on purpose."""
    return isinstance(value, str) and value == REDACTED


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
        TraceError: the value is not a request of OTLP, or a span of it has no ids.
    """
    if not isinstance(request, Mapping) or not isinstance(request.get("resourceSpans"), list):
        raise TraceError("This is not OTLP/JSON: it is not an object with a list resourceSpans.")
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


# Reads and writes requests of OTLP in protobuf, which most exporters send. Needs the extra ``traces``.

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
        raise TraceError(f"{len(body):,} bytes are not protobuf of OTLP.") from error
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
    """Return the response of a backend to a request in protobuf, in OTLP/JSON's form; None where it is not protobuf."""
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


def request_of(spans: Iterable[SpanRecord], service: str) -> dict[str, Any]:
    """Return spans as one request. ``service`` is the name that they state as their service."""
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
    return [{"key": name, "value": _to_otlp_value(value)} for name, value in attributes.items()]


def _to_otlp_value(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": _pairs(value)}}
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return {"arrayValue": {"values": [_to_otlp_value(each) for each in value]}}
    return {} if value is None else {"stringValue": str(value)}
