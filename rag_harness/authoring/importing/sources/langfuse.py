"""Items of a data set of Langfuse, as its page exports them and its API returns them, as CSV, JSON or JSONL.

``input`` and ``expectedOutput`` are a text, messages, or an object, of which ``--map question=input.KEY`` says the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.dataset.records.source_record import plain_text


def _left_out(values: Mapping[str, Any]) -> str:
    return "an archived item" if plain_text(values.get("status")).upper() == "ARCHIVED" else ""


LANGFUSE = SourceFields(
    "langfuse",
    {"query_id": ("id",), "query": ("input",)},
    typical=(
        "sourceTraceId", "sourceObservationId", "datasetId", "datasetName", "expectedOutput", "source_trace_id",
        "source_observation_id", "dataset_name",
    ),
    unread=(
        "createdAt", "updatedAt", "datasetId", "datasetName", "projectId", "created_at", "updated_at",
        "dataset_id", "dataset_name", "project_id", "validFrom", "mediaReferences",
    ),
    objects=("metadata",),
    read_otherwise=("status",),
    left_out=_left_out,
)  # fmt: skip
"""The fields of Langfuse."""
