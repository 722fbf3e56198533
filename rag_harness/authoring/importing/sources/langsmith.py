"""Examples of a data set of LangSmith: objects ``inputs`` and ``outputs``, whose keys every data set chooses.

An object with one text is that text. With several, ``--map question=inputs.KEY ground_truth=outputs.KEY`` says which.
Its CSV has columns of the data set's own, so it is a table: name them with ``--map``.
"""

from __future__ import annotations

from rag_harness.authoring.importing.source_fields import SourceFields

LANGSMITH = SourceFields(
    "langsmith",
    {
        "query_id": ("id", "example_id"),
        "query": ("inputs", "input"),
        "ground_truth": ("outputs", "reference_outputs", "output"),
    },
    typical=("outputs", "reference_outputs", "source_run_id", "reference_example_id"),
    unread=("created_at", "modified_at", "dataset_id", "attachment_urls"),
    unmatched={"attachments": "files beside a question are not sent"},
    objects=("metadata",),
)
"""The fields of LangSmith."""
