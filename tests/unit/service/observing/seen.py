"""Questions as a service saw them."""

from __future__ import annotations

import time
from typing import Any

from rag_harness.core.types import Answer, Call, Chunk, Decision, Hit, Message, PipelineOutput, Stage, Usage
from rag_harness.service.observations import Observed, TraceIds, trace_ids

SECRET_WORDS = ("zebrafish", "quokka", "narwhal", "okapi", "tapir")
"""Of the question, the answer, the source, the prompt and what a stage says: none may stand in what has no content."""
TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def output(outcome: str = "pass", reason: str = "") -> PipelineOutput:
    chunk = Chunk("c1", "animals.md", "The narwhal has a tusk.", 0, 23, ("Whales",))
    prompt = (Message("system", "Answer."), Message("user", "zebrafish? okapi"))
    call = Call("answer", "gpt-x", Usage(120, 30, 1), 80.0, 25.0, 4.0, 1, False, prompt)
    stages = (
        Stage("understand", 1.0),
        Stage(
            "retrieve", 9.5, detail={"searches": ["tapir"], "hits": 5, "best": {"late": {"deep": 1}, "cosine": 0.71}}
        ),
        Stage("generate", 80.0, (call,)),
    )
    decisions = (
        Decision("signal: relevance", "", 0.8123456789),
        Decision("plan", "planned", 2.0, 4.0, "looked up: zebrafish; TAPIR"),
        Decision("decision", outcome, 0.9, 0.6, reason),
    )
    hit = Hit(chunk, 0.71, 1)
    return PipelineOutput(
        Answer("A quokka [Source 1].", citations=(1,), abstained=outcome == "abstain"),
        retrieved=(hit, hit),
        context=(hit,),
        stages=stages,
        decisions=decisions,
        confidence=0.9,
    )


def seen(ids: TraceIds | None = None, **changed: Any) -> Observed:
    wanted: dict[str, Any] = {
        "collection": "default",
        "experiment": "r1",
        "question": "What is a zebrafish?",
        "outcome": "pass",
        "began": time.time(),
        "ms": 100.0,
        "output": output(),
    }
    return Observed(ids or trace_ids(), **{**wanted, **changed})
