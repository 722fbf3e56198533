"""What is known of a question once it was answered, or was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.service.observing.trace_ids import TraceIds
from rag_harness.types import Answer, PipelineOutput

FAILED = "failed"
"""The outcome of a question that got no answer."""
LEFT = "left"
"""That of one whose client left before its answer was there: nobody's failure."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One question: who asked what, what came of it, how long it took.

    Attributes:
        ids: of its trace.
        collection: whose documents were asked.
        experiment: what answered.
        question: in the words of who asked; kept only where traces keep content.
        outcome: ``pass``, ``warn``, ``abstain`` or ``unchecked``; ``failed`` or ``left`` without an answer.
        began: seconds since 1970.
        ms: until the answer was ready.
        output: of the pipeline; of a question that failed, what there was by then.
        inputs: what else the user sent.
        mode: normal or strict.
        status: of HTTP.
        key_id: who asked; None where there are no keys.
        streamed: whether the answer was sent as it came.
        first_token_ms: until its first words were sent; None where it was not streamed.
        failed_stage: in which a question failed.
        error_type: the type of its error.
    """

    ids: TraceIds
    collection: str
    experiment: str
    question: str
    outcome: str
    began: float
    ms: float
    output: PipelineOutput = field(default_factory=lambda: PipelineOutput(Answer("")))
    inputs: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "normal"
    status: int = 200
    key_id: int | None = None
    streamed: bool = False
    first_token_ms: float | None = None
    failed_stage: str = ""
    error_type: str = ""
