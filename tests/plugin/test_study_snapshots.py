"""What a reviewer should see change: the chunks that each query retrieves, and the prompts, replayed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

from rag_harness.core.types import Chunk, Hit
from rag_harness.models.prompts import load_prompts
from rag_harness.records.row import ExperimentResult, parse_row

pytestmark = pytest.mark.usefixtures("cold_python")
FILES = {"e2": "e2_standard_rag", "e3": "e3_filtered_rag", "e4": "e4_reasoning_rag"}
QUERY = "q_direct_001"


@pytest.fixture(scope="module")
def rows(study: Path) -> dict[str, list[ExperimentResult]]:
    files = {name: (study / "out" / f"{stem}.jsonl").read_text().splitlines() for name, stem in FILES.items()}
    return {name: [parse_row(line) for line in lines] for name, lines in files.items()}


@pytest.mark.parametrize("experiment", ["e2", "e3"])
def test_retrieved_chunks(
    rows: dict[str, list[ExperimentResult]], experiment: str, snapshot: SnapshotAssertion
) -> None:
    retrieved = {row.query_id: [chunk.chunk_id for chunk in row.retrieved_chunks] for row in rows[experiment]}
    assert "\n".join(f"{query_id}: {' '.join(ids)}" for query_id, ids in retrieved.items()) == snapshot


def test_e4_retrieves_what_e3_retrieves(rows: dict[str, list[ExperimentResult]]) -> None:
    chunks = {name: [[chunk.chunk_id for chunk in row.retrieved_chunks] for row in rows[name]] for name in ("e3", "e4")}
    assert chunks["e3"] == chunks["e4"]


@pytest.mark.parametrize("experiment", ["e1", "e2", "e3", "e4"])
def test_prompts(rows: dict[str, list[ExperimentResult]], experiment: str, snapshot: SnapshotAssertion) -> None:
    row = next(each for each in rows["e3" if experiment == "e1" else experiment] if each.query_id == QUERY)
    hits = [Hit(Chunk(each.chunk_id, each.metadata.filename, each.text), 0.0, 1) for each in row.retrieved_chunks]
    messages = load_prompts(experiment).messages(row.query, hits)
    assert "\n\n".join(f"{each.role}:\n{each.content}" for each in messages) == snapshot


def test_prompts_of_the_snapshot_are_the_recorded_ones(rows: dict[str, list[ExperimentResult]]) -> None:
    row = next(each for each in rows["e3"] if each.query_id == QUERY)
    hits = [Hit(Chunk(each.chunk_id, each.metadata.filename, each.text), 0.0, 1) for each in row.retrieved_chunks]
    asked = load_prompts("e3").messages(row.query, hits)[-1].content
    recordings = (Path(__file__).parents[2] / "cassettes").rglob("*.yaml")
    assert any(json.dumps(asked, ensure_ascii=False) in file.read_text(encoding="utf-8") for file in recordings)
