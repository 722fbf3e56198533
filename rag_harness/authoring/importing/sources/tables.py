"""Tables and JSON of no tool in particular: columns are known by their names, or named by ``--map``."""

from __future__ import annotations

from dataclasses import replace

from rag_harness.authoring.importing.field_mapping import MAPPED
from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.dataset.records.field_names import MEANINGS

TABLE = SourceFields(
    "csv", {ours: names for ours, names in MEANINGS.items() if ours in MAPPED}, objects=("metadata",), separator="|"
)
"""The fields of a table."""
HUGGING_FACE = replace(TABLE, name="hf")
"""The same, of a data set in a folder."""
