"""From labels of people to a gate on what they would say, as a user goes the way: mock judge, no model."""

from __future__ import annotations

import json

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import Suite

GATE = "--rag-gate=e3: faithfulness~calibrated >= 0.3"


def label(suite: Suite) -> None:
    """Write what people say of three of the four answers."""
    labels = [("q_direct_001", 1), ("q_direct_002", 1), ("q_direct_003", 0)]
    lines = [json.dumps({"experiment": "e3", "query_id": query, "human": human}) for query, human in labels]
    (suite.path / "labels.jsonl").write_text("\n".join(lines))


def test_a_gate_on_what_people_would_say(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.path)
    before = suite.run(GATE)
    assert before.ret == 1
    before.stdout.fnmatch_lines(
        ["failed      e3: faithfulness~calibrated >= 0.3", "*cannot be calibrated: no calibration of faithfulness*"]
    )
    label(suite)
    assert main(["judge", "calibrate", "labels.jsonl"]) == 0
    after = suite.run(GATE)
    assert after.ret == 0
    after.stdout.fnmatch_lines(["passed      e3: faithfulness~calibrated >= 0.3*n=*", "*calibrated on 3 labels, λ = *"])
    (gate,) = json.loads((suite.path / "output" / "summary.json").read_text())["gates"]
    assert gate["gate"] == "e3: faithfulness~calibrated >= 0.3"
    assert gate["value"] == pytest.approx(2 / 3, abs=0.25)


def test_another_judge_than_the_calibrated_one_fails_it(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(suite.path)
    suite.run("--rag-measures=faithfulness")
    label(suite)
    assert main(["judge", "calibrate", "labels.jsonl"]) == 0
    suite.pytester.makeconftest('from rag_harness.evaluation.judges import mock\nmock.MockJudge.revision = "2"\n')
    result = suite.run(GATE)
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        ["*mock-faithfulness.json is of another judge: revision*", "*here 2+*. Compare this one*"]
    )
