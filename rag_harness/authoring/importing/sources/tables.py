"""Tables and JSON of no tool in particular: columns are known by their names, or named by ``--map``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rag_harness.authoring.importing.demands import Demand
from rag_harness.authoring.importing.field_mapping import MAPPED
from rag_harness.authoring.importing.messages import structured
from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.dataset.records.field_names import MEANINGS

_EXPECT = "expect"


def _expected(values: Mapping[str, Any]) -> Sequence[Demand]:
    """Return the expectations of a column that has them as lines of questions do."""
    stated = structured(values.get(_EXPECT))
    listed = stated if isinstance(stated, list) else [stated]
    return [each for each in listed if each not in (None, "")]


TABLE = SourceFields(
    "csv",
    {**{ours: names for ours, names in MEANINGS.items() if ours in MAPPED}, "query": (*MEANINGS["query"], "messages")},
    unmatched={"qrels": "grades are imported where all fields of a record are ours (docs/reference/importing.md)"},
    scored=(
        "response", "actual_output", "retrieved_context", "retrieved_contexts", "retrieval_context",
        "retrieved_context_ids",
    ),
    objects=("metadata",),
    read_otherwise=(_EXPECT,),
    separator="|",
    expected=_expected,
)  # fmt: skip
"""The fields of a table."""
HUGGING_FACE = replace(TABLE, name="hf")
"""The same, of a data set in a folder."""
