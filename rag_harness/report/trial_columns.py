"""The columns of a table of trials, and their values from a case and its row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rag_harness.measures.correct import correctness
from rag_harness.measures.hits import ranking_of
from rag_harness.measures.spent import (
    CompletionTokens,
    CostUsd,
    LlmMs,
    PromptTokens,
    RerankMs,
    RetrievalMs,
    TotalMs,
    TtftMs,
)
from rag_harness.results.cases import KeptCase
from rag_harness.results.row import ExperimentResult
from rag_harness.results.storable import storable
from rag_harness.types import Case

Kind = Literal["name", "text", "flag", "number", "count", "names", "counts"]
"""Kind of a column: a recurring word, text, true or false, a float, an integer, a list of texts, a list of integers."""
Record = dict[str, Any]
"""A trial by column. A missing value is None, never NaN or empty text."""

_SPENT = (TotalMs(), RetrievalMs(), RerankMs(), LlmMs(), TtftMs())
_COUNTED = (PromptTokens(), CompletionTokens())
_COST = CostUsd()
_QUESTION: Mapping[str, Kind] = {
    "experiment": "name", "query_id": "text", "query": "text", "query_type": "text",
}  # fmt: skip
_ANSWER: Mapping[str, Kind] = {
    "answerable": "flag", "status": "text", "error": "text", "answer": "text", "abstained": "flag",
    "ground_truth": "text", "retrieved": "names", "citations": "counts", "correct_by": "text", "category": "text",
    "cause": "text", "cause_detail": "text",
}  # fmt: skip
_TOOK: Mapping[str, Kind] = {
    **dict.fromkeys([measure.name for measure in _SPENT], "number"), "waited_ms": "number",
    **dict.fromkeys([measure.name for measure in _COUNTED], "count"), _COST.name: "number", "confidence": "number",
    "model": "text", "profile": "text", "mode": "text", "fingerprint": "text",
}  # fmt: skip
_FIXED = {**_QUESTION, **_ANSWER, **_TOOK}
READ_OFF = {*(measure.name for measure in (*_SPENT, *_COUNTED, _COST)), "confidence"}
"""Measures that are fields of the row. Their columns exist in every run, and are not repeated."""
_PLACE = "\0"
"""Prefix of a rank whose document already has an earlier rank."""


def columns_for(labels: Sequence[str], measures: Sequence[str]) -> dict[str, Kind]:
    """Return the kind of each column, in their order, given the column names of labels and measures."""
    return {
        **_QUESTION,
        **dict.fromkeys(labels, "text"),
        **_ANSWER,
        **dict.fromkeys(measures, "number"),
        **_TOOK,
    }


def label_column(label: str) -> str:
    """Return the name of a label's column."""
    return f"label.{text_or_none(label)}"


def measure_column(measure: str) -> str:
    """Return the name of a measure's column: its own name, unless another column has it."""
    return measure if measure not in _FIXED else f"measure.{measure}"


def of_case(experiment: str, kept: KeptCase) -> dict[str, Any]:
    """Return what is known of a trial before it runs."""
    case = kept.case
    return {
        "experiment": experiment,
        "query_id": text_or_none(case.query.query_id),
        "query": text_or_none(case.query.text),
        "query_type": text_or_none(kept.labels.get("query_type")),
        "answerable": case.answerable,
        "ground_truth": text_or_none(case.ground_truth),
    }


def of_row(row: ExperimentResult, case: Case | None = None) -> dict[str, Any]:
    """Return the result of a trial. The fields of an answer are empty where there is none, or none was asked for."""
    answered = bool(row.ok and row.llm_answer)
    return {
        **({"query": text_or_none(row.query)} if case is not None and case.scenario is not None else {}),
        "error": row.error_text or None,
        "answer": row.llm_answer if answered else None,
        "abstained": row.abstained if answered else None,
        "retrieved": [None if name.startswith(_PLACE) else name for name in ranking_of(row, case)],
        "citations": list(row.citations) if answered else None,
        "correct_by": text_or_none(correctness(case, row).by) if case is not None else None,
        **{measure.name: measure.read(row) for measure in (*_SPENT, *_COUNTED, _COST)},
        "waited_ms": row.waited_ms,
        "confidence": row.confidence,
        "model": row.model or None,
        "profile": row.profile or None,
        "mode": row.mode,
        "fingerprint": row.fingerprint or None,
    }


def text_or_none(value: str | None) -> str | None:
    """Return text that every format can hold; None for empty text."""
    return (value if value.isascii() else storable(value)) if value else None
