"""Conversations that a simulated user plays, as a suite has them: turns as tests, ends, repeats, resume."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import Suite

PIPELINE = """
import json, pathlib
import pytest

class Shop:
    def answer(self, query):
        with pathlib.Path("asked.jsonl").open("a") as file:
            file.write(json.dumps([query.query_id, query.text]) + "\\n")
        if "deposit" in query.text:
            return "The deposit is €120."
        if "friday" in query.text:
            return "Three days cost €36."
        if "rent" in query.text:
            return "Yes. For how many people, and for which days?"
        return "I don't know."

@pytest.fixture(scope="session")
def rag_pipeline():
    return Shop()

@pytest.mark.rag_experiment("c1")
def test_it(rag_result):
    assert rag_result.ok, rag_result.why
"""
TENT: dict[str, Any] = {
    "conversation": "sim_001",
    "scenario": {
        "persona": "impatient, writes in fragments",
        "goal": "knows what three days with the bigger tent cost",
        "opening": "can i rent a tent?",
        "facts": ["two adults and a child", "friday to sunday"],
        "asks": ["and the deposit?"],
        "reached": [{"contains": "€36"}],
        "max_turns": 6,
    },
    "context_reference": ["returns.md"],
}


@pytest.fixture
def played(suite: Suite) -> Suite:
    suite.pytester.makepyfile(PIPELINE)
    suite.write_queries([TENT])
    return suite


def asked(suite: Suite) -> list[list[str]]:
    """Return what was asked since the last call, in its order."""
    file = suite.path / "asked.jsonl"
    found = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    return found


def test_a_script_plays_a_scenario_until_its_goal_is_reached(played: Suite) -> None:
    result = played.run("-v", "-rs", "-n0")
    result.assert_outcomes(passed=3, skipped=3)
    result.stdout.fnmatch_lines(["*[[]c1-sim-sim_001#1[]]*", "SKIPPED*ended after turn 3: the goal is reached"])
    assert asked(played) == [
        ["sim_001#1", "can i rent a tent?"],
        ["sim_001#2", "two adults and a child, friday to sunday"],
        ["sim_001#3", "and the deposit?"],
    ]
    rows: dict[Any, Any] = {row["query_id"]: row for row in played.rows("c1-sim")}
    assert [each["content"] for each in rows["sim_001#3"]["inputs"]["history"]] == [
        "can i rent a tent?",
        "Yes. For how many people, and for which days?",
        "two adults and a child, friday to sunday",
        "Three days cost €36.",
    ]
    # What the user wants stays with the harness.
    assert "€36" not in json.dumps({name: each for name, each in rows["sim_001#1"].items() if name != "llm_answer"})
