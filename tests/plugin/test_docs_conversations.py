"""The pages on conversations do what they say: their conversations, their assistant and their commands are run."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from rag_harness.data.query_lines import MOST_TURNS
from rag_harness.diagnosis.cause_lines import _LINES_OF_MESSAGE, _MOST_TURNS
from rag_harness.evaluation.measures import known_measures
from rag_harness.runs.conversations import SHOWN
from rag_harness.runs.gates import parse_gate
from tests.plugin.conftest import Suite

DOCS = Path(__file__).parents[2] / "docs"
PAGE, HISTORY, MEASURES, REFERENCE = (
    (DOCS / page).read_text(encoding="utf-8")
    for page in (
        "how-to/conversations.md",
        "how-to/conversation-history.md",
        "how-to/measure-conversations.md",
        "reference/conversations.md",
    )
)


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def commands(page: str) -> list[list[str]]:
    return [shlex.split(line)[1:] for line in page.splitlines() if line.startswith("    pytest ")]


@pytest.fixture
def mine(suite: Suite) -> Suite:
    (suite.path / "conversations.jsonl").write_text(block("json"))
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_my_rag=block("python"))
    return suite


def test_its_conversations_are_asked_with_the_reference_replies(mine: Suite) -> None:
    everything, one = commands(PAGE)
    mine.run(*everything).assert_outcomes(passed=5)
    rows = {row["query_id"]: row for row in mine.rows("mine")}
    assert rows["conv_007#3"]["llm_answer"] == "You asked 2 questions before: Do you ship to Mars?"
    mine.run(*one, "--rag-gate-partial", "--rag-overwrite").assert_outcomes(passed=3, failed=1)  # the gate
    node = re.search(r"`(test_my_rag\.py::\S+)`", PAGE)
    assert node is not None
    mine.run(*everything, node[1], "--rag-overwrite").assert_outcomes(passed=1)


def test_both_histories_are_two_experiments(mine: Suite) -> None:
    (command,) = commands(HISTORY)
    mine.run(*command, "--rag-gate=mine: error_rate <= mine-own").stdout.fnmatch_lines(["*not the same questions*"])
    assert len(mine.rows("mine")) == len(mine.rows("mine-own")) == 5
    own: dict[str, dict[str, object]] = {str(row["query_id"]): row for row in mine.rows("mine-own")}
    assert json.loads(json.dumps(own["conv_008#2"]["inputs"]))["history"][1]["content"].startswith("You asked 0")


def test_explain_shows_the_chat_as_the_page_does(mine: Suite) -> None:
    mine.run(*commands(PAGE)[0]).assert_outcomes(passed=5)
    section = PAGE.partition("\n## When a turn fails\n")[2].partition("\n## ")[0]
    command, *shown = [line.removeprefix("    ") for line in section.splitlines() if line.startswith("    ")]
    assert mine.pytester.run(*shlex.split(command)).outlines[: len(shown)] == shown
    assert f"the last {_MOST_TURNS} turns, {_LINES_OF_MESSAGE} lines a message" in section


def test_it_says_what_a_user_sees_and_how_long_a_conversation_may_be() -> None:
    assert f'"{SHOWN}"' in HISTORY
    assert f"more than {MOST_TURNS} turns" in REFERENCE


def test_its_gates_are_gates_and_its_measures_are_there() -> None:
    (gates,) = re.findall(r"```gates\n(.*?)```", MEASURES, re.DOTALL)
    assert all(parse_gate(gate, k=5) for gate in gates.splitlines())
    (command,) = commands(MEASURES)
    named = next(each for each in command if each.startswith("--rag-measures=")).partition("=")[2].split(",")
    assert {*named} <= {*known_measures()}
    table = REFERENCE.partition("## Measures of turns")[2]
    assert {*re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)} == {*named} - {"faithfulness"}
