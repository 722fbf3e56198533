"""Goldens of deepeval (4.3): ``EvaluationDataset.save_as`` as JSON, JSONL and CSV, and the camelCase of its API.

``expectations`` are criteria in words, so they become rubrics. A ``ConversationalGolden`` with turns is a conversation
whose last question owes the outcome; one without turns has no first words, which a scenario of ours begins with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rag_harness.authoring.importing.demands import Demand
from rag_harness.authoring.importing.messages import structured
from rag_harness.authoring.importing.source_fields import SourceFields
from rag_harness.dataset.records.list_cells import texts_of
from rag_harness.dataset.records.source_record import plain_text

_SIDES = ("must", "must_not", "mustNot")
_EMPTY: Sequence[Any] = (None, "", [], {})
_CLASSES = "labels of a classifier are not demanded by a line of questions"


def _is_synthetic(values: Mapping[str, Any]) -> bool:
    """Return whether a golden comes of deepeval's synthesizer, which leaves its evolutions there."""
    labels = structured(values.get("additional_metadata") or values.get("additionalMetadata"))
    return isinstance(labels, dict) and "evolutions" in labels


def _expected(values: Mapping[str, Any]) -> list[Demand]:
    outcome = plain_text(values.get("expected_outcome") or values.get("expectedOutcome"))
    return [
        *({"rubric": text} for text in ([outcome] if outcome else [])),
        *_criteria(structured(values.get("expectations"))),
    ]


def _criteria(stated: Any) -> list[Demand]:
    """Return criteria in words as rubrics: an object says what must be and what must not; all others must be."""
    if isinstance(stated, dict):
        forbidden = texts_of(stated.get("must_not") or stated.get("mustNot"))
        wanted: list[Demand] = [{"rubric": text} for text in texts_of(stated.get("must"))]
        # What is no criterion is named by whoever looks at the demands.
        others = [{name: each} for name, each in stated.items() if name not in _SIDES and each not in _EMPTY]
        return [*wanted, *({"not": {"rubric": text}} for text in forbidden), *others]
    if isinstance(stated, list):
        return [demand for each in stated for demand in _criteria(each)]
    return [{"rubric": text}] if (text := plain_text(stated)) else []


DEEPEVAL = SourceFields(
    "deepeval",
    {
        "query_id": ("id", "name"),
        "query": ("input", "turns"),
        "evidence": ("context",),
        "context_reference": ("source_file", "sourceFile"),
        "tools": ("expected_tools", "expectedTools"),
    },
    typical=(
        "expected_output", "actual_output", "retrieval_context", "expected_outcome", "expected_tools", "source_file",
        "additional_metadata", "custom_column_key_values", "actualOutput", "retrievalContext", "expectedOutcome",
        "expectedTools", "sourceFile", "additionalMetadata",
    ),
    scored=(
        "actual_output", "retrieval_context", "tools_called", "actualOutput", "retrievalContext", "toolsCalled",
        "token_cost", "tokenCost", "input_token_count", "inputTokenCount", "output_token_count", "outputTokenCount",
    ),
    unmatched={
        "expected_labels": _CLASSES,
        "expectedLabels": _CLASSES,
        "persona": "who a simulated user is: write it into a scenario (docs/how-to/simulate-users.md)",
    },
    read_otherwise=("expectations", "expected_outcome", "expectedOutcome", "turns"),
    objects=("additional_metadata", "additionalMetadata", "custom_column_key_values", "customColumnKeyValues"),
    separator="|",
    is_synthetic=_is_synthetic,
    expected=_expected,
    no_question="a scenario without turns: write what its user says first, as a scenario "
    "(docs/how-to/conversations.md)",
)  # fmt: skip
"""The fields of deepeval."""
