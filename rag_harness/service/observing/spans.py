"""From a question's stages and calls to spans.

A pipeline measures how long stages and calls take, and notes their order, but not when each began. So a span begins
where the span before it ends, and ``rag_harness.starts`` is ``inferred``. A replayed call has the length in its
recording, and a stage that calls models has the length of its calls. So spans may end after their question does, or
leave a gap before its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from rag_harness.service.observing import genai_names
from rag_harness.service.observing.attributes import RETRIEVE, Attributes, of_call, of_question, of_stage
from rag_harness.service.observing.observed import FAILED, Observed
from rag_harness.types import Stage

Kind = Literal["internal", "client"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a trace; ``start_ms`` counts from the start of the question; the first span's ``parent`` is empty."""

    span_id: str
    parent: str
    name: str
    kind: Kind
    start_ms: float
    ms: float
    attributes: Attributes = field(default_factory=dict)
    failed: bool = False

    def json(self) -> dict[str, Any]:
        """Return the span for JSON. ``dataclasses.asdict`` would copy every value, half of a trace's time."""
        return {name: getattr(self, name) for name in self.__slots__}


def spans_of(seen: Observed) -> tuple[Span, ...]:
    """Return the spans of a question: itself, each stage, each call. Their ids are derived from the trace's."""
    name, failed = f"{genai_names.WORKFLOW_OPERATION} {seen.experiment}", seen.outcome == FAILED
    spans = [Span(_span_id(seen, 0), "", name, "internal", 0.0, seen.ms, of_question(seen), failed)]
    start = 0.0
    for stage in seen.output.stages:
        spans += _of_stage(seen, stage, len(spans), start)
        start += stage.ms
    return tuple(spans)


def _of_stage(seen: Observed, stage: Stage, number: int, start: float) -> Iterator[Span]:
    """Yield the spans of a stage and its calls; ``number`` counts the spans before it."""
    own, failed = _span_id(seen, number), stage.name == seen.failed_stage
    name = f"{genai_names.RETRIEVAL_OPERATION} {seen.collection}" if stage.name == RETRIEVE else stage.name
    yield Span(own, _span_id(seen, 0), name, "internal", start, stage.ms, of_stage(seen, stage), failed)
    for place, call in enumerate(stage.calls, number + 1):
        model = f"{genai_names.CHAT_OPERATION} {call.model}".strip()
        yield Span(_span_id(seen, place), own, model, "client", start, call.ms, of_call(call))
        start += call.ms


def _span_id(seen: Observed, number: int) -> str:
    return sha256(f"{seen.ids.trace_id}/{number}".encode()).hexdigest()[:16]
