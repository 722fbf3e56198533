"""What is known of a question once it is answered or has failed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.service.observing.trace_ids import TraceIds
from rag_harness.types import Answer, PipelineOutput

FAILED = "failed"
"""The outcome of a question that got no answer."""
LEFT = "left"
"""The outcome of a question whose client left before the answer. It is not counted as a failure."""


@dataclass(frozen=True, slots=True)
class Observed:
    """One question: who asked what, with which outcome, and how long it took.

    Attributes:
        ids: the ids of its trace.
        collection: the name of the collection.
        experiment: the experiment that answered.
        question: its words; kept only if traces keep content.
        outcome: ``pass``, ``warn``, ``abstain`` or ``unchecked``; ``failed`` or ``left`` without an answer.
        began: seconds since 1970.
        ms: time until the answer was ready.
        output: the pipeline's; for a failed question, what there was by then.
        inputs: what else the user sent.
        mode: normal or strict.
        status: the HTTP status.
        key_id: the id of the key; None if there are no keys.
        streamed: whether the answer was sent as it came.
        first_token_ms: time until its first words were sent; None if it was not streamed.
        failed_stage: the stage in which a question failed.
        error_type: the type of its error.
        answered: what the page needs to show the answer again, as plain JSON; None without an answer.
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
    answered: Mapping[str, Any] | None = None
