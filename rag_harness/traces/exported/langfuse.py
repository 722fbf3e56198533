"""Spans as Langfuse exports them: observations, alone or below their trace.

https://langfuse.com/docs/observability/data-model
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from rag_harness.errors import TraceError
from rag_harness.traces.exported.nested_values import nanoseconds
from rag_harness.traces.span_record import SpanRecord

_KINDS = {"GENERATION": "LLM", "SPAN": "CHAIN", "EVENT": "CHAIN"}
"""Types that OpenInference calls otherwise; RETRIEVER, TOOL, AGENT, EMBEDDING, GUARDRAIL are its own names."""
_TOKENS = {"prompt": ("input", "promptTokens", "prompt_tokens"), "completion": ("output", "completionTokens")}


def is_langfuse(said: Mapping[str, Any]) -> bool:
    """Return whether an object is an observation of Langfuse, or a trace with observations."""
    return isinstance(said.get("observations"), list) or ("traceId" in said and "type" in said and "startTime" in said)


def spans_of_langfuse(said: Mapping[str, Any]) -> Iterator[SpanRecord]:
    """Yield the spans of an observation, or of a trace, which is a span around its observations.

    Raises:
        TraceError: an observation has no ids, or a trace names its observations without having them.
    """
    inside = said.get("observations")
    if not isinstance(inside, list):
        yield _span(said, str(said.get("traceId") or ""), str(said.get("parentObservationId") or ""))
        return
    trace_id = str(said.get("id") or "")
    if any(not isinstance(each, Mapping) for each in inside):
        raise TraceError(
            f"Trace {trace_id!r} of Langfuse names its observations and does not have them: export observations, "
            f"or each trace by GET /api/public/traces/{{id}}."
        )
    spans = [_span(each, trace_id, str(each.get("parentObservationId") or f"trace-{trace_id}")) for each in inside]
    begin = nanoseconds(said.get("timestamp")) or min((span.start_ns for span in spans), default=0)
    about = {"openinference.span.kind": "CHAIN", **_sides(said)}
    end = max((span.end_ns for span in spans), default=begin)
    yield SpanRecord(str(said.get("name") or "trace"), trace_id, f"trace-{trace_id}", "", begin, end, about)
    yield from spans


def _span(said: Mapping[str, Any], trace_id: str, parent: str) -> SpanRecord:
    name, span_id = str(said.get("name") or said.get("type") or ""), str(said.get("id") or "")
    if not trace_id or not span_id:
        raise TraceError(f"Observation {name[:100]!r} of Langfuse has no {'id' if trace_id else 'traceId'}.")
    kind = str(said.get("type", "")).upper()
    begin, end = nanoseconds(said.get("startTime")), nanoseconds(said.get("endTime"))
    attributes = {"openinference.span.kind": _KINDS.get(kind, kind), **_sides(said)}
    if kind == "GENERATION":
        attributes |= _of_a_call(said)
    if kind == "TOOL":
        attributes["tool.name"] = name
    failed = str(said.get("level", "")).upper() == "ERROR"
    message = str(said.get("statusMessage") or "")
    return SpanRecord(
        name, trace_id, span_id, parent, begin, max(end, begin), attributes, failed=failed, message=message
    )


def _sides(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return input and output under OpenInference's names, JSON as text."""
    given = {f"{side}.value": said.get(side) for side in ("input", "output")}
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in given.items()
        if value is not None
    }


def _of_a_call(said: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"llm.model_name": said.get("model") or said.get("providedModelName") or ""}
    usage = _first_object(said, "usageDetails", "usage")
    for side, names in _TOKENS.items():
        found[f"llm.token_count.{side}"] = next((usage[name] for name in names if name in usage), 0)
    costs = _first_object(said, "costDetails")
    cost = next(
        (each for each in (costs.get("total"), said.get("calculatedTotalCost"), said.get("totalCost")) if each), None
    )
    for side in ("input", "output"):
        for n, (role, text) in enumerate(_messages(said.get(side), "user" if side == "input" else "assistant")):
            found[f"llm.{side}_messages.{n}.message.role"] = role
            found[f"llm.{side}_messages.{n}.message.content"] = text
    return found if cost is None else {**found, "llm.cost.total": cost}


def _first_object(said: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    return next((value for name in names if isinstance(value := said.get(name), Mapping)), {})


def _messages(said: Any, role: str) -> Iterator[tuple[str, str]]:
    said = said["messages"] if isinstance(said, Mapping) and isinstance(said.get("messages"), list) else said
    for each in said if isinstance(said, list) else [said]:
        content = each.get("content") if isinstance(each, Mapping) else each
        if isinstance(content, list):
            content = "\n".join(part["text"] for part in content if isinstance(part, Mapping) and "text" in part)
        if isinstance(content, str) and content:
            yield str(each.get("role") or role) if isinstance(each, Mapping) else role, content
