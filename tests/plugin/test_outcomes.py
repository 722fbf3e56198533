"""A run that is red for pytest is red in what is made of it: comment, badge, page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import main
from tests.plugin.conftest import TEST, Suite

GATE = "--rag-gate=e3: recall@5 >= 0.5"
PASSED = "## ✅ PASS: 1 of 1 gate passed, 0 failed"


def head(folder: Path, output: str = "output") -> str:
    """Return the first line of the comment on a run."""
    assert main(["report", str(folder / output), "-o", str(folder / "comment.md")]) == 0
    return (folder / "comment.md").read_text(encoding="utf-8").partition("\n")[0]


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_an_answer_that_failed_its_test_and_another_failed_test_are_red(suite: Suite, workers: str) -> None:
    wrong = "    assert rag_result.query_id != 'q_direct_002', 'wrong'\n\n\ndef test_other():\n    assert 1 == 2\n"
    suite.pytester.makepyfile(f"{TEST}{wrong}")
    suite.run(GATE, workers).assert_outcomes(passed=3, failed=2)
    assert head(suite.path) == "## ❌ FAIL: 1 of 4 questions failed; 1 other test failed; 1 gate passed"
    text = (suite.path / "comment.md").read_text(encoding="utf-8")
    assert "- `e3-q_direct_002`: express delivery costs" in text
    record = json.loads((suite.path / "output" / "run.json").read_text())
    assert (record["suites"]["e3"]["failed"], record["other_failures"]) == (["q_direct_002"], 1)


def test_an_expected_failure_is_not_red(suite: Suite) -> None:
    suite.pytester.makepyfile(f"{TEST}    pytest.xfail('known')\n")
    suite.run(GATE).assert_outcomes(xfailed=4)
    assert head(suite.path) == PASSED


def test_a_gate_that_had_to_be_judged_and_was_not_is_red(suite: Suite) -> None:
    result = suite.run(GATE, "--rag-gate=e2: recall@5 >= 0.5", "--rag-not-judged=fail", "-k", "e3")
    assert result.ret == 1
    said = "1 gate not judged, which fails this run (--rag-not-judged=fail); 1 gate passed, 1 not judged"
    assert head(suite.path) == f"## ❌ FAIL: {said}"
