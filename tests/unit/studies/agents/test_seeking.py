"""The agent on the mock profile: what it does is in its row, and one search is one search."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from rag_harness.core.types import Hit, PipelineOutput, Query
from rag_harness.data.queries import read_queries
from rag_harness.pipelines.experiments import experiment
from rag_harness.studies.agents import in_turn
from tests.unit.hits import hits_of
from tests.unit.pipelines.mock_parts import parts_of, write_kb

KB = Path(__file__).parents[4] / "data" / "kb"
PAGES = {
    "returns.md": "# Returns\n\nYou can return a lamp within 45 days of delivery.\n",
    "refunds.md": "# Refunds\n\nThe refund of a purchase takes 5 working days.\n",
    "shipping.md": "# Shipping\n\nExpress delivery takes one day and costs €9.90.\n",
    "warranty.md": "# Warranty\n\nThe warranty of a mower lasts 3 years.\n",
}
TWO = Query("q1", "Within how many days can I return a lamp, and what does express delivery cost?")


@pytest.fixture
def kb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return write_kb(tmp_path, PAGES, monkeypatch)


def answered(kb: Path, name: str, query: Query = TWO) -> PipelineOutput:
    parts = parts_of(kb, chat_model="embedded/extractive", candidates=1, top_k=2)
    return asyncio.run(experiment(name, parts).pipeline.answer(query))  # type: ignore[no-any-return]


def test_it_plans_searches_looks_searches_again_and_answers(kb: Path) -> None:
    output = answered(kb, "a1")
    steps = [(step.name, step.kind) for step in output.stages]
    round_ = [("search", "retrieve"), ("rerank", "rerank"), ("look", "decide")]
    assert steps[:5] == [("plan", ""), *round_, round_[0]]
    assert steps[-3:] == [("prompt", ""), ("generate", "generate"), ("parse", "")]
    first, second = (step for step in output.stages if step.kind == "retrieve")
    look = next(step for step in output.stages if step.name == "look")
    assert first.input == TWO.text
    assert second.input == look.output["next"] != TWO.text
    assert {hit.chunk.doc_id for hit in output.context} == {"returns.md", "shipping.md"}


def test_the_same_agent_with_one_search_finds_one_page(kb: Path) -> None:
    output = answered(kb, "a1-once")
    assert [step.name for step in output.stages] == ["plan", "search", "rerank", "prompt", "generate", "parse"]
    assert len(output.context) == 1


def test_it_stops_where_the_first_search_has_it_all(kb: Path) -> None:
    output = answered(kb, "a1", Query("q2", "Can I return a lamp?"))
    assert sum(step.kind == "retrieve" for step in output.stages) == 1


def test_hits_of_several_searches_take_turns_and_no_chunk_comes_twice() -> None:
    def ids(hits: list[Hit]) -> list[str]:
        return [hit.chunk.chunk_id for hit in hits]

    a, b, c = hits_of(["a", "b", "c"])
    assert ids(in_turn([[a, b], [b, c]])) == ids([a, b, c])
    assert ids(in_turn([[a], [b, a, c]])) == ids([a, b, c])
    assert in_turn([]) == in_turn([[], []]) == []


def test_its_questions_are_those_of_the_study_that_need_more_than_one_page() -> None:
    """Chosen by their gold alone: no score has a say."""
    shipped = (KB / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    pages = {line: json.loads(line)["context_reference"] for line in shipped}
    wanted = [line for line in shipped if isinstance(pages[line], list) and len(pages[line]) > 1]
    assert (KB / "agent_queries.jsonl").read_text(encoding="utf-8").splitlines() == wanted
    cases = read_queries(KB / "agent_queries.jsonl", KB)
    assert sorted(len(case.context_reference) for case in cases) == [2] * 30 + [3] * 10
