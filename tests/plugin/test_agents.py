"""An agent as a user runs it: its steps are told, its searches and tools are measured and gated."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.test_own_expectations import gate_line

AGENT = """
import pytest
from rag_harness import Answer, Chunk, Hit, StepTrace, Trace

PAGES = {"return": "returns.md", "express": "shipping.md", "warranty": "warranty.md"}

def search(query, k):
    found = [page for word, page in PAGES.items() if word in query]
    return [Hit(Chunk(f"{page}#0", page, page), 1.0, n) for n, page in enumerate(found, 1)]

class Agent:
    fingerprint = "1"

    async def answer(self, query):
        with StepTrace() as trace:
            for word in query.text.split():
                await trace.search(search, word, 3)
            await trace.tool("price", lambda sku: 7, sku="T-18")
            trace.context = trace.retrieved
            return trace.output(Answer("45 days"))

class Flat:
    fingerprint = "1"

    def answer(self, query):
        return "45 days"

class Summed:
    fingerprint = "1"

    async def answer(self, query):
        trace = Trace()
        with trace.stage("generate"):
            answer = Answer("45 days")
        return trace.output(answer)

@pytest.fixture(scope="session")
def rag_pipeline(request):
    return AGENT_CLASS()

@pytest.mark.rag_experiment("mine")
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
    result = agent(suite).run("--rag-foreign-text=allow", *(f"--rag-gate=mine: {gate}" for gate in wanted))
    assert result.ret == 0
    for gate, found in wanted.items():
        result.stdout.fnmatch_lines([f"passed *mine: {gate} *{found}*"])
    row: Any = suite.rows("mine")[0]
    assert [step["name"] for step in row["stages"]] == ["search", "search", "search", "price"]
    assert [len(step.get("hits", ())) for step in row["stages"]] == [1, 1, 0, 0]


@pytest.mark.parametrize(
    ("pipeline", "why"), [("Flat", "its pipeline tells no steps"), ("Summed", "its trace tells no steps")]
)
def test_a_pipeline_that_tells_no_steps_passes_no_gate_on_them(suite: Suite, pipeline: str, why: str) -> None:
    names = ("searches <= 9", "repeated_searches <= 1", "needless_searches <= 1", "steps <= 9", "tool_precision >= 0")
    result = agent(suite, pipeline).run(*(f"--rag-gate=mine: {name}" for name in names))
    assert result.ret != 0
    for name in names:
        line = gate_line(result, f"mine: {name}")
        assert not line.startswith("passed"), name
        assert why in line, name


def test_other_expected_tools_ask_nothing_again_and_are_another_figure(suite: Suite) -> None:
    gate = "--rag-gate=mine: tool_args >= baseline"
    agent(suite).run("--rag-save=main", "--rag-gate=mine: tool_args >= 1")
    before = (suite.path / "output" / "mine.jsonl").read_text()
    changed = [{**LINES[0], "tools": [{"name": "price", "args": {"sku": "T-19"}}]}, LINES[1]]
    result = agent(suite, lines=changed).run("--rag-compare=main", gate)
    assert result.ret != 0
    assert (suite.path / "output" / "mine.jsonl").read_text() == before
    kept = [json.loads(line) for line in next((suite.path / "output" / "cases").iterdir()).read_text().splitlines()]
    assert kept[0]["tools"][0]["args"] == {"sku": "T-19"}
    assert f"passed      {gate.partition('=')[2]}" not in result.stdout.str()


SEEKER = """
from rag_harness import Answer, Chunk, Experiment, Hit, StepTrace

PAGES = {"tents.md": "The Ridge tent costs EUR 18 a day.", "lamps.md": "A lamp costs EUR 7 for a week."}
CHUNKS = {name: Chunk(f"{name}#0", name, text) for name, text in PAGES.items()}

def search(query, k):
    found = [CHUNKS[name] for name in PAGES if name[:4] in query]
    return [Hit(chunk, 1.0, n) for n, chunk in enumerate(found, 1)]

class Seeker:
    fingerprint = "1"

    async def answer(self, query):
        # Each word after "then" is a search. It answers with what it found last.
        with StepTrace() as trace:
            with trace.step("plan", "decide", query.text) as plan:
                plan.output = query.text.split(" then ")[1:]
            for part in plan.output:
                await trace.search(search, part, 3)
            found = trace.retrieved[-1:] if "last" in query.text else trace.retrieved
            trace.context = [] if "drop" in query.text else found
            text = " ".join(hit.chunk.text for hit in trace.context) or "It is free."
            return trace.output(Answer("It is free." if "both" in query.text and len(trace.retrieved) > 1 else text))

def build(parts):
    return Experiment("seeks", Seeker(), chunks=lambda: list(CHUNKS.values()))
"""


def seeking(query_id: str, query: str, *pages: str) -> dict[str, Any]:
    said = {"tents.md": ("EUR 18 a day", "costs EUR 18 a day"), "lamps.md": ("EUR 7 a week", "costs EUR 7 for a week")}
    return {
        "query_id": query_id,
        "query": query,
        "ground_truth": " and ".join(said[page][0] for page in pages),
        "evidence": [{"filename": page, "quote": said[page][1]} for page in pages],
        "context_reference": list(pages),
    }


def test_why_an_agent_failed_is_told_and_tried(suite: Suite) -> None:
    """Each question has one thing wrong in its searches; the re-runs replace a search, or end the searching."""
    package = suite.path / "seeker-1.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: seeker\nVersion: 1\n")
    (package / "entry_points.txt").write_text("[rag_harness.pipelines]\nseeks = seeker:build\n")
    (suite.path / "seeker.py").write_text(SEEKER)
    texts = {"tents.md": "The Ridge tent costs EUR 18 a day.", "lamps.md": "A lamp costs EUR 7 for a week."}
    for page, text in texts.items():
        (suite.path / "kb" / page).write_text(f"# Page\n\n{text}\n")
    suite.write_queries(
        [
            seeking("never", "what does it cost?", "tents.md"),
            seeking("wrong", "what does it cost then moon", "tents.md"),
            seeking("early", "what do the Ridge tent and the lamp cost then tent", "tents.md", "lamps.md"),
            seeking("unused", "what does it cost, drop then tent", "tents.md"),
            seeking("on", "what does it cost, both then tent then lamp", "tents.md"),
        ]
    )
    suite.pytester.makepyfile("import pytest\n\n@pytest.mark.rag_experiment('seeks')\ndef test_it(rag_result): pass\n")
    suite.run("--rag-attribute", "--rag-profile=mock").assert_outcomes(passed=5)
    lines = [json.loads(line) for line in (suite.path / "output" / "causes.jsonl").read_text().splitlines()]
    found = {line["query_id"]: (line["cause"], line["detail"], line["repaired_by"]) for line in lines}
    assert found == {
        "never": ("Retrieval Miss", "never searched", ""),
        "wrong": ("Retrieval Miss", "searched for the wrong thing", "+gold_search_1"),
        "early": ("Retrieval Miss", "stopped too early", "+gold_search_1"),
        "unused": ("Retrieval Miss", "found and not used", ""),
        "on": ("Logic Failure", "searched on after all was found", "+stop_searching"),
    }
    tried = suite.path / "output" / "derived" / "seeks+gold_search_1.jsonl"
    before = tried.read_bytes()
    again = suite.pytester.run(sys.executable, "-m", "rag_harness", "explain", "output", "seeks-wrong").stdout.str()
    assert "search 1 of 1 asked “moon”" in again
    assert tried.read_bytes() == before  # what was tried is not run again
