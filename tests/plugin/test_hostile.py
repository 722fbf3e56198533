"""Runs, simulated users, rubrics and snapshots of data that tries to be more than texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.hostile import WHOLE
from tests.plugin.conftest import Suite
from tests.unit.core.escaping.active import in_markdown, on_terminal, unseen

# A run whose questions, answers, errors and gold try to be more than texts: terminal, JUnit XML, reports, log.

MINE = """
import pytest

class Mine:
    def answer(self, query):
        if int(query.query_id[1:]) % 5 == 0:
            raise ValueError(query.text)
        return query.text

@pytest.fixture
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
    assert rag_result.llm_answer == "right\\n" + rag_result.ground_truth, rag_result.query

@pytest.mark.rag_experiment("mine")
def test_skipped(rag_result):
    if rag_result.query_id[-1] == "3":
        pytest.xfail(rag_result.query)
    pytest.skip(rag_result.query)
"""


# Each text in one of its four places: the next text in the next place. What each does in each, unit tests look at.
EACH = [text for number, text in enumerate(WHOLE) if number % 4 == number // 4 % 4]


def asked(texts: Sequence[str]) -> list[dict[str, object]]:
    return [
        {
            "query_id": f"q{number}",
            "query": text,
            "ground_truth": f"gold {text}",
            "context_reference": ["returns.md"],
            "evidence": [{"filename": "returns.md", "quote": "You can return a lamp within 45 days."}],
            "metadata": {"topic": text},
        }
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("texts", [EACH, pytest.param(WHOLE, marks=pytest.mark.long)], ids=["each", "in each place"])
def test_nothing_of_it_acts_in_what_a_run_leaves(suite: Suite, texts: Sequence[str]) -> None:
    suite.write_queries(asked(texts))
    suite.pytester.makepyfile(MINE)
    out = ("--junitxml=j.xml", "--rag-report=r.md", "-o", "rag_attribute=true", "--rag-slices=topic")
    gate = ("-o", "rag_gate=mine: recall@5 >= 0.9 else look at ::error::x", "--rag-repeats=2")
    result = suite.run("-v", "-rA", "--json-report", "--json-report-file=j.json", *out, *gate)
    said = result.stdout.str() + result.stderr.str()
    assert "rag causes" in said
    assert f"{len(texts) + 1} failed" in said, "and the gate"
    assert "INTERNALERROR" not in said
    assert on_terminal(said) == []
    assert _of_junit(suite.path / "j.xml") == []
    assert on_terminal((suite.path / "j.json").read_text(encoding="utf-8")) == []
    assert in_markdown((suite.path / "r.md").read_text(encoding="utf-8")) == []
    assert [on_terminal(file.read_text(encoding="utf-8")) for file in (suite.path / "logs").glob("*.log")] == [[]]
    lines = (suite.path / "output" / "mine.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    rows = {str(row["query_id"]): row for row in map(json.loads, lines)}
    asked_as = [rows[f"q{number}"]["query"] for number in range(len(texts))]
    assert asked_as == [text.strip() for text in texts], "kept as they are"
    summary = (suite.path / "output" / "summary.json").read_text(encoding="utf-8")
    assert unseen(summary) == []
    json.loads(summary)


def test_a_miss_of_the_golden_suite(suite: Suite) -> None:
    entries = [{"query": text, "expected_document_id": "warranty.md", "justification": text} for text in EACH[::3]]
    (suite.path / "kb" / "golden.json").write_text(json.dumps(entries))
    suite.pytester.makepyfile(
        "def test_golden(rag_retrieval):\n    assert rag_retrieval.ok and rag_retrieval.found, rag_retrieval.query\n"
    )
    for strict in ((), ("--rag-strict",)):
        result = suite.run(
            "-v", "-rA", "-p", "no:xdist", "--junitxml=j.xml", "--rag-golden=kb/golden.json", "--rag-k=2", *strict
        )
        said = result.stdout.str() + result.stderr.str()
        assert "rag golden" in said, said[-1500:]
        assert on_terminal(said) == []
        assert _of_junit(suite.path / "j.xml") == []


def _of_junit(file: Path) -> list[str]:
    text = file.read_text(encoding="utf-8")
    nodes = list(ElementTree.fromstring(text).iter())
    texts = [each for node in nodes for each in (node.text or "", node.tail or "", *node.attrib.values())]
    return [*on_terminal(text), *(found for each in texts for found in unseen(each))]


# Simulated users, rubrics and snapshots of data that tries to be more than texts: nothing acts, nothing is lost.

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
