"""The JSON Schema of a row of results."""

from __future__ import annotations

from rag_harness.files.json_schema import DRAFT, Schema
from rag_harness.results.row import ExperimentResult


def row_schema() -> Schema:
    """Return the schema of a line of a result file, as it is written."""
    return {"$schema": DRAFT, **ExperimentResult.model_json_schema(mode="serialization")}
