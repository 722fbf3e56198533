"""Simulated users, rubrics and snapshots of data that tries to be more than texts: nothing acts, nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.hostile import WHOLE
from tests.plugin.conftest import Suite
from tests.unit.core.escaping.active import in_markdown, on_terminal

TEXTS = [text for text in WHOLE[1::9] if text.strip()]
SHOP = """
import json, pathlib
import pytest

TEXTS = json.loads(pathlib.Path("texts.json").read_text())

class Shop:
    fingerprint = "1"

    def answer(self, query):
        return TEXTS[len(query.text) % len(TEXTS)]

@pytest.fixture(scope="session")
def rag_pipeline():
    return Shop()

@pytest.mark.rag_experiment("mine")
def test_it(rag_result):
    assert rag_result.ok, rag_result.why
"""


def scenario(number: int, text: str) -> dict[str, Any]:
    told = {"persona": text, "goal": text, "opening": text, "facts": [text], "asks": [text], "max_turns": 3}
    return {"conversation": f"c{number}", "scenario": {**told, "reached": [{"contains": "never said"}]}}


def test_a_user_that_says_what_acts_is_played_and_shown(suite: Suite) -> None:
    suite.pytester.makepyfile(SHOP)
    (suite.path / "texts.json").write_text(json.dumps(TEXTS))
    suite.write_queries([scenario(number, text) for number, text in enumerate(TEXTS)])
    result = suite.run("-v", "-rA", "--rag-report=r.md", "--rag-gate=mine-sim: goal_reached >= 0.9")
    said = result.stdout.str() + result.stderr.str()
    assert "INTERNALERROR" not in said
    assert on_terminal(said) == []
    assert in_markdown((suite.path / "r.md").read_text(encoding="utf-8")) == []
    lines = (suite.path / "output" / "mine-sim.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = [json.loads(line) for line in lines]
    assert {str(row["query_id"]).partition("#")[0] for row in rows} == {f"c{number}" for number in range(len(TEXTS))}


def test_answers_that_act_are_kept_as_snapshots_and_the_same_afterwards(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:hypothesispytest")
    suite.pytester.makepyfile(SHOP)
    (suite.path / "texts.json").write_text(json.dumps(TEXTS))
    suite.write_queries(
        [
            {"query_id": f"q{number}", "query": "?" * (number + 1), "expect": [{"snapshot": True}]}
            for number in range(len(TEXTS))
        ]
    )
    gate = "--rag-gate=mine: expect_snapshot >= 1"
    assert suite.run("--snapshot-update").ret == 0
    again = suite.run("-v", "-rA", "--rag-overwrite", gate)
    assert (again.ret, on_terminal(again.stdout.str())) == (0, [])
    (suite.path / "texts.json").write_text(json.dumps([*TEXTS[1:], TEXTS[0]]))
    changed = suite.run("-v", "-rA", "--rag-overwrite", "--rag-report=r.md", gate)
    assert changed.ret == 1
    assert on_terminal(changed.stdout.str()) == []
    assert in_markdown((suite.path / "r.md").read_text(encoding="utf-8")) == []


def test_criteria_that_act_are_judged_and_shown(suite: Suite) -> None:
    suite.pytester.makepyfile(SHOP)
    (suite.path / "texts.json").write_text(json.dumps(TEXTS))
    suite.write_queries([{"query_id": f"q{number}", "query": "?" * (number + 1)} for number in range(4)])
    (suite.path / "rubrics").mkdir()
    criteria = [text for text in TEXTS if len(text) > 3 and max(text) < "\U00010000"][:30]  # TOML has no surrogates
    told = f"about = {json.dumps(criteria[0])}\ncriteria = {json.dumps(criteria)}\n"
    (suite.path / "rubrics" / "odd.toml").write_text(told)
    gate = "--rag-gate=mine: rubric_odd >= 0.9"
    result = suite.run("-v", "-rA", "--rag-judge=embedded", "--rag-report=r.md", gate)
    said = result.stdout.str() + result.stderr.str()
    assert "rubric_odd" in said
    assert "INTERNALERROR" not in said
    assert on_terminal(said) == []
    assert in_markdown((suite.path / "r.md").read_text(encoding="utf-8")) == []
