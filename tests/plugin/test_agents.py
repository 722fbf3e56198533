"""An agent as a user runs it: its steps are told, its searches and tools are measured and gated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import Suite

AGENT = """
import pytest
from rag_harness import Answer, Chunk, Hit, StepTrace

PAGES = {"return": "returns.md", "express": "shipping.md", "warranty": "warranty.md"}

def search(query, k):
    found = [page for word, page in PAGES.items() if word in query]
    return [Hit(Chunk(f"{page}#0", page, page), 1.0, n) for n, page in enumerate(found, 1)]

class Agent:
    async def answer(self, query):
        with StepTrace() as trace:
            for word in query.text.split():
                await trace.search(search, word, 3)
            await trace.tool("price", lambda sku: 7, sku="T-18")
            trace.context = trace.retrieved
            return trace.output(Answer("45 days"))

class Flat:
    def answer(self, query):
        return "45 days"

@pytest.fixture(scope="session")
def rag_pipeline(request):
    return AGENT_CLASS()

@pytest.mark.rag_experiment("a1")
def test_it(rag_result):
    assert rag_result.ok
"""
EXPECTED = [{"name": "price", "args": {"sku": "T-18"}}]
LINES: list[dict[str, Any]] = [
    {"query_id": "q1", "query": "return return lamp", "context_reference": ["returns.md"], "tools": EXPECTED},
    {"query_id": "q2", "query": "express warranty", "context_reference": ["shipping.md", "warranty.md"], "tools": []},
]


def agent(suite: Suite, name: str = "Agent", lines: list[dict[str, Any]] | None = None) -> Suite:
    suite.pytester.makepyfile(AGENT.replace("AGENT_CLASS", name))
    suite.write_queries(lines or LINES)
    return suite


def test_searches_and_tools_of_an_agent_are_gated(suite: Suite) -> None:
    wanted = {
        "searches <= 2.5": "2.5*n=2",
        "recall_by_step@1 >= 0.75": "0.750*n=2",
        "search_novelty >= 0.5": "0.500*n=2",
        "repeated_searches <= 0.2": "0.167*n=2",
        "searches_after_evidence <= 0.34": "0.333*n=2",
        "needless_searches <= 1": "1.000*n=1",
        "tool_recall >= 1": "1.000*n=1",
        "tool_precision >= 0.5": "0.500*n=2",
        "tool_args_exact >= 1": "1.000*n=1",
    }
    result = agent(suite).run(*(f"--rag-gate=a1: {gate}" for gate in wanted))
    assert result.ret == 0
    for gate, found in wanted.items():
        result.stdout.fnmatch_lines([f"passed *a1: {gate} *{found}*"])
    row: Any = suite.rows("a1")[0]
    assert [step["name"] for step in row["stages"]] == ["search", "search", "search", "price"]
    assert [len(step.get("hits", ())) for step in row["stages"]] == [1, 1, 0, 0]


@pytest.mark.parametrize("gate", ["searches <= 9", "repeated_searches <= 1", "needless_searches <= 1"])
def test_a_pipeline_that_tells_no_steps_passes_no_gate_on_them(suite: Suite, gate: str) -> None:
    result = agent(suite, "Flat").run(f"--rag-gate=a1: {gate}")
    assert result.ret != 0
    assert f"passed        a1: {gate}" not in result.stdout.str()
    result.stdout.fnmatch_lines([f"*a1: {gate}*"])


def test_other_expected_tools_ask_nothing_again_and_are_another_figure(suite: Suite) -> None:
    gate = "--rag-gate=a1: tool_args >= baseline"
    agent(suite).run("--rag-save=main", "--rag-gate=a1: tool_args >= 1", "--rag-baselines=baselines")
    before = (suite.path / "output" / "a1.jsonl").read_text()
    changed = [{**LINES[0], "tools": [{"name": "price", "args": {"sku": "T-19"}}]}, LINES[1]]
    result = agent(suite, lines=changed).run("--rag-compare=main", gate, "--rag-baselines=baselines")
    assert result.ret != 0
    assert (suite.path / "output" / "a1.jsonl").read_text() == before
    kept = [json.loads(line) for line in next((suite.path / "output" / "cases").iterdir()).read_text().splitlines()]
    assert kept[0]["tools"][0]["args"] == {"sku": "T-19"}
    assert f"passed        {gate.partition('=')[2]}" not in result.stdout.str()
