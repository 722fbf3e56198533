"""Conversations that a simulated user plays, as a suite has them: turns as tests, ends, repeats, resume."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.counting_server import CountingServer, counting_server

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


SAYS = {
    "Yes. For how many": "two adults, a child, friday to sunday",
    "Three days cost": "and the deposit?",
    "The deposit is": "",
}
"""What the model of role user says after each reply; nothing ends the conversation."""


def plays(body: Any) -> str:
    heard = str(body["messages"][1]["content"]).rpartition("Assistant: ")[2]
    said = next(text for begin, text in SAYS.items() if heard.startswith(begin))
    return json.dumps({"say": said or "I know what I wanted", "done": not said})


@pytest.fixture
def server() -> Iterator[CountingServer]:
    with counting_server(delay=0.0, reply=plays) as running:
        yield running


def by_model(server: CountingServer, mode: str = "live") -> list[str]:
    return ["--rag-user-model=gpt-user", f"--rag-user-base-url={server.url}", f"--rag-mode={mode}"]


def test_a_model_plays_a_scenario_and_its_calls_stand_apart_in_the_row(played: Suite, server: CountingServer) -> None:
    result = played.run("-rs", "-n0", *by_model(server))
    result.assert_outcomes(passed=3, skipped=3)
    result.stdout.fnmatch_lines(["SKIPPED*ended after turn 3: the user ends it: I know what I wanted"])
    rows: dict[Any, Any] = {row["query_id"]: row for row in played.rows("c1-sim")}
    said = ["can i rent a tent?", SAYS["Yes. For how many"], "and the deposit?"]
    assert [row["query"] for row in rows.values()] == said
    user = rows["sim_001#2"]["user"]
    assert user["detail"] == {"by": "gpt-user"}
    assert [(call["role"], call["usage"]["prompt_tokens"]) for call in user["calls"]] == [("user", 10)]
    assert rows["sim_001#2"]["usage"]["calls"] == 0
    assert not rows["sim_001#2"]["stages"]
    assert sum(server.calls.values()) == 3
    result.stdout.fnmatch_lines(["the simulated user of c1-sim took 3 calls and 45 tokens, counted in no figure of*"])
    # What a model has said is not asked for again, nor whether it is done.
    played.run("-n0", *by_model(server)).assert_outcomes(passed=3, skipped=3)
    assert sum(server.calls.values()) == 3
    assert len(asked(played)) == 3


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
@pytest.mark.parametrize("longer", ["first", "second"])
def test_a_repeat_is_another_conversation_that_may_be_longer_or_shorter(
    played: Suite, server: CountingServer, longer: str, workers: str
) -> None:
    def reply(body: Any) -> str:
        first = body["seed"] == 7
        if first != (longer == "first") and "Three days" in str(body["messages"]):
            return json.dumps({"say": "enough", "done": True})
        return plays(body)

    server.reply = reply
    arguments = ["--rag-repeats=2", workers, *by_model(server)]
    result = played.run(*arguments, "--rag-gate=c1-sim: worst_of_2(goal_reached) >= 1")
    asked_first, asked_again = (3, 2) if longer == "first" else (2, 3)
    result.assert_outcomes(passed=asked_first, skipped=6 - asked_first)
    assert len(played.rows("c1-sim")) == asked_first
    again = {str(row["query_id"]): row for row in played.rows("derived/c1-sim+repeat2")}
    assert len(again) == asked_again
    record = json.loads((played.path / "output" / "run.json").read_text())["suites"]["c1-sim"]
    assert len(record["ended"]) == 6 - asked_first
    assert len(record["again"]["2"]["ended"]) == 6 - asked_again
    result.stdout.fnmatch_lines(["passed*c1-sim: worst_of_2(goal_reached) >= 1*"])
    result.stdout.no_fnmatch_line("*did not come*")
    before = sum(server.calls.values())
    played.run(*arguments).assert_outcomes(passed=asked_first, skipped=6 - asked_first)
    assert sum(server.calls.values()) == before
