"""Samples of ragas: ``SingleTurnSample``, ``MultiTurnSample`` and test sets, as JSONL or CSV (ragas 0.2 to 0.4).

``user_input`` is a text, or a list of messages; the last of the user is the question. The names of ragas 0.1
(``question``, ``ground_truth``, ``contexts``) are read, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.dataset.records.source_record import plain_text

_GENERATED = ("synthesizer_name", "persona_name", "query_style", "query_length", "evolution_type")


def _is_generated(values: Mapping[str, Any]) -> bool:
    return any(plain_text(values.get(name)) for name in _GENERATED)


def _type_of(values: Mapping[str, Any]) -> str:
    name = plain_text(values.get("synthesizer_name"))
    return "multi_hop" if name.startswith("multi_hop") else "direct" if name.startswith("single_hop") else ""


RAGAS = SourceFields(
    "ragas",
    {
        "query_id": ("id",),
        "query": ("user_input", "question"),
        "evidence": ("reference_contexts",),
        "context_reference": ("reference_context_ids",),
        "tools": ("reference_tool_calls",),
    },
    typical=("user_input", "reference_contexts", "synthesizer_name", "reference_tool_calls"),
    scored=("response", "multi_responses", "retrieved_contexts", "retrieved_context_ids", "answer", "contexts"),
    unmatched={
        "rubrics": "a scale of scores in words; write each criterion as a rubric (docs/how-to/rubrics.md)",
        "rubric": "a scale of scores in words; write each criterion as a rubric (docs/how-to/rubrics.md)",
        "reference_topics": "what an assistant may talk about; write it as a rubric (docs/how-to/rubrics.md)",
    },
    is_synthetic=_is_generated,
    type_of=_type_of,
)
"""The fields of ragas."""
