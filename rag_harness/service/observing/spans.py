"""A question's stages and calls -> spans.

A pipeline times its stages and calls and notes their order, not when each began. So a span lasts as long as it says,
and is placed where the one before it ends: ``rag_harness.starts`` is ``inferred``. A replayed call lasts as long as its
recording says, and a stage that calls models as long as its calls. So spans may end after their question does, or leave
a gap before its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

from rag_harness.service.observing import names
from rag_harness.service.observing.attributes import RETRIEVE, Attributes, of_call, of_question, of_stage
from rag_harness.service.observing.observed import FAILED, Observed
from rag_harness.types import Stage

Kind = Literal["internal", "client"]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a trace; ``start_ms`` counts from the beginning of the question, ``parent`` is empty of the first."""

    span_id: str
    parent: str
    name: str
    kind: Kind
    start_ms: float
    ms: float
    attributes: Attributes = field(default_factory=dict)
    failed: bool = False

    def json(self) -> dict[str, Any]:
        """Return the span for JSON; ``dataclasses.asdict`` copies every value, for half of a trace's time."""
        return {name: getattr(self, name) for name in self.__slots__}


def spans_of(seen: Observed) -> tuple[Span, ...]:
    """Return the spans of a question: itself, each stage, each call; ids follow from the trace's."""
    name, failed = f"{names.WORKFLOW_OPERATION} {seen.experiment}", seen.outcome == FAILED
    spans = [Span(_span_id(seen, 0), "", name, "internal", 0.0, seen.ms, of_question(seen), failed)]
    start = 0.0
    for stage in seen.output.stages:
        spans += _of_stage(seen, stage, len(spans), start)
        start += stage.ms
    return tuple(spans)


def _of_stage(seen: Observed, stage: Stage, number: int, start: float) -> Iterator[Span]:
    """Go through a stage and its calls; ``number`` counts the spans before it."""
    own, failed = _span_id(seen, number), stage.name == seen.failed_stage
    name = f"{names.RETRIEVAL_OPERATION} {seen.collection}" if stage.name == RETRIEVE else stage.name
    yield Span(own, _span_id(seen, 0), name, "internal", start, stage.ms, of_stage(seen, stage), failed)
    for place, call in enumerate(stage.calls, number + 1):
        model = f"{names.CHAT_OPERATION} {call.model}".strip()
        yield Span(_span_id(seen, place), own, model, "client", start, call.ms, of_call(call))
        start += call.ms


def _span_id(seen: Observed, number: int) -> str:
    return sha256(f"{seen.ids.trace_id}/{number}".encode()).hexdigest()[:16]
