"""The words of a question, of its sources and of its answer. They are kept only if the operator wants it."""

from __future__ import annotations

from typing import Any

from rag_harness.service.observing.observed import Observed
from rag_harness.types import Hit


def content_of(seen: Observed) -> dict[str, Any]:
    """Return the words of a question, its answer, the sources shown, and the prompts as they were sent."""
    output = seen.output
    return {
        "question": seen.question,
        "inputs": dict(seen.inputs),
        "answer": output.answer.text,
        "cited": list(output.answer.citations),
        "sources": [_source(hit) for hit in output.context],
        "answered": seen.answered,
        "decisions": [{"name": each.name, "reason": each.reason} for each in output.decisions if each.reason],
        "prompts": [[[one.role, one.content] for one in call.messages] for call in output.calls if call.messages],
    }


def _source(hit: Hit) -> dict[str, Any]:
    chunk = hit.chunk
    return {"document": chunk.doc_id, "section": " > ".join(chunk.section), "score": hit.score, "text": chunk.text}
