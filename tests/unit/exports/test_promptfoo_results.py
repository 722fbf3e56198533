"""A results file of promptfoo: counts that add up, a result a trial, the same bytes the second time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rag_harness.exports import promptfoo_results
from rag_harness.exports.scored_run import ScoredRun
from rag_harness.exports.scored_traces import ScoredTrace, scored_traces
from tests.unit.exports.conftest import Exporting


def test_a_result_for_each_trial(exporting: Exporting, tmp_path: Path) -> None:
    status, said = exporting("promptfoo", "-o", str(tmp_path / "out"))
    file = tmp_path / "out" / "promptfoo.json"
    assert (status, f"promptfoo import {file}" in said) == (0, True)
    content = json.loads(file.read_text())
    results = content["results"]["results"]
    assert content["results"]["version"] == 3
    stats = content["results"]["stats"]
    assert stats["successes"] + stats["failures"] + stats["errors"] == len(results) == 12
    assert {each["vars"]["query"] for each in results if each["promptId"] == "e3"} >= {"What?"}
    failed = next(each for each in results if each["testCase"]["description"] == "failed")
    assert (failed["success"], failed["failureReason"], failed["score"]) == (False, 2, 0.0)
    assert failed["error"]
    good = next(each for each in results if each["testCase"]["description"] == "q0")
    assert (good["success"], good["gradingResult"]["pass"]) == (True, True)
    assert "recall@5" in good["namedScores"]
    assert "FAILED: e3[topic=t1]: token_f1 >= 0.9" in content["config"]["description"]
    prompts = {each["id"]: each["metrics"] for each in content["results"]["prompts"]}
    assert set(prompts) == {"e3", "golden"}
    assert sum(each["testPassCount"] for each in prompts.values()) == stats["successes"]


def test_what_is_expected_and_was_not_measured_does_not_pass(
    exporting: Exporting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def owing(run: ScoredRun, output: Path) -> Iterator[ScoredTrace]:
        yield from (replace(trace, owes=True) for trace in scored_traces(run, output))

    monkeypatch.setattr(promptfoo_results, "scored_traces", owing)
    exporting("promptfoo", "-o", str(tmp_path / "out"))
    results = json.loads((tmp_path / "out" / "promptfoo.json").read_text())["results"]["results"]
    good = next(each for each in results if each["testCase"]["description"] == "q0")
    assert "expectations" not in good["namedScores"]
    assert (good["success"], good["score"], good["failureReason"]) == (False, 0.0, 1)
    assert good["gradingResult"]["reason"] == "what is expected of it was not measured"


def test_a_second_export_changes_nothing(exporting: Exporting, tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    exporting("promptfoo", "-o", str(file))
    before = file.read_bytes()
    exporting("promptfoo", "-o", str(file))
    assert file.read_bytes() == before


def test_a_place_that_is_a_file_is_refused(exporting: Exporting, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    status, said = exporting("promptfoo", "-o", str(tmp_path / "taken"))
    assert status == 2
    assert "Name another place: -o FILE.json" in said
