"""An agent's row has its steps in their order: what each search was asked, and what it brought."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.types import Answer, Case, Chunk, Hit, PipelineOutput, Query, Stage
from rag_harness.records.row import ExperimentResult, parse_row
from rag_harness.runs.trial import Trial, make_row

FOUND = Hit(Chunk("returns.md#0", "returns.md", "45 days"), 0.7, 1)
STEPS = (
    Stage("look", 5, kind="retrieve", input="return a lamp", hits=(FOUND,)),
    Stage("retrieve", 7, input="return a tent"),
    Stage("calculator", 1, kind="tool", input={"sum": [1, 2]}, output=3),
    Stage("generate", 20, detail={"note": "x"}),
)


def row_of(*stages: Stage) -> ExperimentResult:
    output = PipelineOutput(Answer("45 days"), stages=stages)
    return make_row(Trial("a1", Case(Query("q1", "How long?"))), output, None, 1.0, Settings(), "print")


def test_steps_stand_in_the_row_in_their_order_and_are_read_again() -> None:
    row = row_of(*STEPS)
    assert parse_row(row.line()) == row
    assert [stage.does for stage in row.stages] == ["retrieve", "retrieve", "tool", "generate"]
    assert [(hit.chunk_id, hit.filename, hit.score) for hit in row.stages[0].hits] == [
        ("returns.md#0", "returns.md", 0.7)
    ]
    assert (row.stages[2].input, row.stages[2].output) == ({"sum": [1, 2]}, 3)


def test_a_step_that_tells_nothing_of_this_is_written_as_before() -> None:
    stages: list[dict[str, Any]] = json.loads(row_of(*STEPS).line())["stages"]
    assert stages[3].keys() == {"name", "ms", "calls", "detail"}
    assert stages[1].keys() == {"name", "ms", "calls", "detail", "input"}


def test_times_are_the_sums_of_the_steps_of_a_kind() -> None:
    row = row_of(*STEPS)
    assert (row.retrieval_time_ms, row.rerank_time_ms, row.llm_time_ms, row.total_time_ms) == (12, None, 20, 33)
    assert row_of(STEPS[3]).retrieval_time_ms is None


@pytest.mark.parametrize("told", ["x" * 30_000, {"page": "x" * 30_000}])
def test_what_a_tool_returned_is_shortened_in_the_row(told: Any) -> None:
    said = row_of(Stage("fetch", 1, kind="tool", output=told)).stages[0].output
    assert len(said) < 20_100
    assert said.endswith(" characters)")


def test_what_is_no_json_is_told_as_text() -> None:
    row = row_of(Stage("fetch", 1, kind="tool", input={"when": object, "nan": float("nan")}))
    assert row.stages[0].input == {"when": "<class 'object'>", "nan": None}
    assert parse_row(row.line()) == row
