"""Conversations as a user runs them: turns as tests, what was said before, gates by turn, conversations as clusters."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.plugin.conftest import Suite

PIPELINE = """
import pytest

class Echo:
    def answer(self, query):
        said = [each.content for each in query.history]
        return f"{query.text} after {said}"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Echo()

@pytest.mark.rag_experiment("c1")
def test_it(rag_result):
    assert rag_result.ok
"""
TURN: dict[str, Any] = {"query": "How long?", "ground_truth": "45 days", "expect": [{"contains": "45 days"}]}


@pytest.fixture
def talk(suite: Suite) -> Suite:
    suite.pytester.makepyfile(PIPELINE)
    suite.write_queries([{"conversation": f"c{n}", "turns": [TURN] * 3} for n in range(4)])
    return suite


def test_each_turn_is_a_test_that_sees_what_was_said_before_it(talk: Suite) -> None:
    result = talk.run(
        "-v", "--rag-gate=c1[turn>=2]: expectations >= 0.9 @95%", "--rag-gate=c1: expectations >= 0.6 @95%"
    )
    result.assert_outcomes(passed=12)
    result.stdout.fnmatch_lines(["*[[]c1-c0#1[]]*", "*[[]c1-c0#2[]]*"])
    rows: dict[Any, Any] = {row["query_id"]: row for row in talk.rows("c1_standalone")}
    assert rows["c0#1"]["llm_answer"] == "How long? after []"
    assert rows["c0#3"]["llm_answer"] == "How long? after ['How long?', '45 days', 'How long?', '45 days']"
    assert rows["c0#3"]["inputs"]["history"][1] == {"role": "assistant", "content": "45 days"}
    # 4 conversations stand behind 8 turns, and 4 do not tell as much as 8.
    result.stdout.fnmatch_lines(["*c1[[]turn>=2[]]: expectations >= 0.9 @95%*", "*of 4 conversations*"])


def test_a_changed_history_is_another_case(talk: Suite) -> None:
    talk.run().assert_outcomes(passed=12)
    talk.write_queries([{"conversation": f"c{n}", "turns": [{**TURN, "reply": "Long."}] * 3} for n in range(4)])
    talk.run().assert_outcomes(passed=12)
    rows: dict[Any, Any] = {row["query_id"]: row for row in talk.rows("c1_standalone")}
    assert "['How long?', 'Long.']" in rows["c1#2"]["llm_answer"]


def test_turns_count_as_cases_of_their_own_where_that_is_asked_for(talk: Suite) -> None:
    alone = talk.run("--rag-cluster=none", "--rag-gate=c1: expectations >= 0.2 @95%").stdout.str()
    assert "conversations" not in alone


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_turns_that_are_out_of_order_are_named_before_anything_is_asked(talk: Suite, workers: str) -> None:
    lines = [{"conversation": "c1", "turn": n, "query": "?"} for n in (1, 3)]
    talk.write_queries(json.loads(json.dumps(lines)))
    result = talk.run(workers)
    assert result.ret != 0
    assert "queries.jsonl:2: turn 3 of 'c1' comes without turn 2" in result.stderr.str() + result.stdout.str()
    assert not talk.rows("c1_standalone")
