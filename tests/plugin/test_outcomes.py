"""A run that is red for pytest is red in what is made of it: comment, badge, page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from tests.plugin.conftest import TEST, Suite, copy_data

GATE = "--rag-gate=e3: recall@5 >= 0.5"
LEFT = "what follows is what is left of the run before it, and of this one"
STALE = f"## ❔ NO VERDICT: the last run left no results; {LEFT}"
PASSED = "## ✅ PASS: 1 of 1 gate passed, 0 failed"


def head(folder: Path, output: str = "output") -> str:
    """Return the first line of the comment on a run."""
    assert main(["report", str(folder / output), "-o", str(folder / "comment.md")]) == 0
    return (folder / "comment.md").read_text(encoding="utf-8").partition("\n")[0]


@pytest.fixture(scope="module")
def passed(shared_suite: Suite) -> Path:
    """The folder of a suite that has run, and whose gate passed."""
    shared_suite.run(GATE).assert_outcomes(passed=4)
    return shared_suite.path


@pytest.fixture
def after_a_run(suite: Suite, passed: Path) -> Suite:
    """The suite with what that run has left."""
    for name in ("output", ".rag_cache"):
        copy_data(passed / name, suite.path / name)
    return suite


@pytest.mark.parametrize("workers", [pytest.param("-n0", marks=pytest.mark.long), "-n2"])
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
    result = suite.run(GATE, "--rag-gate=e3: hit@5 >= baseline", "--rag-not-judged=fail")
    assert result.ret == 1
    said = "1 gate not judged, which fails this run (--rag-not-judged=fail); 1 gate passed"
    assert head(suite.path) == f"## ❌ FAIL: {said}"


def test_gates_that_were_judged_on_a_part_say_it(suite: Suite) -> None:
    result = suite.run(GATE, "--rag-gate-partial", "-k", "q_direct_002")
    assert any(" 1 passed, 0 failed, on 1 of 4 questions" in line for line in result.outlines)
    assert head(suite.path) == f"{PASSED}, on 1 of 4 questions"


def mark(suite: Suite) -> dict[str, str] | None:
    """Return the mark of a run that left no results; None where there is none."""
    file = suite.path / "output" / "begun.json"
    return json.loads(file.read_text()) if file.exists() else None


DOWN = """
import pytest

@pytest.mark.rag_experiment("down")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


def test_after_a_run_whose_service_was_down_nothing_is_green_until_a_run_leaves_results(
    after_a_run: Suite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = after_a_run
    assert mark(suite) is None
    (suite.path / "down.toml").write_text(
        'url = "http://127.0.0.1:9/q"\nbody = { q = "{{query}}" }\n[read]\nanswer = "answer"\n'
    )
    suite.pytester.makepyfile(DOWN)
    suite.pytester.makeconftest("from rag_harness.pipelines.endpoint import pipeline\n\npipeline._WAITS = (0.0,)\n")
    result = suite.run("--rag-endpoint=down.toml", "--rag-mode=live")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    found = mark(suite)
    assert found is not None
    assert found["why"].startswith("Nothing answers at http://127.0.0.1:9/q")
    assert found["command"].endswith(" --rag-endpoint=down.toml --rag-mode=live")
    assert head(suite.path) == STALE
    text = (suite.path / "comment.md").read_text(encoding="utf-8")
    assert "left no results: Nothing answers at " in text
    output = str(suite.path / "output")
    for command in (
        ["explain", output],
        ["report", output, "-o", str(suite.path / "r.html")],
    ):
        capsys.readouterr()
        assert main(command) == 0
        assert "The last run left no results: Nothing answers at " in capsys.readouterr().out.partition("\n")[0]
    assert main(["compare", output, output]) == CANNOT_RUN
    assert "left no results: Nothing answers at " in capsys.readouterr().err
    assert STALE.removeprefix("## ") in (suite.path / "r.html").read_text(encoding="utf-8")
    suite.pytester.makepyfile(TEST)
    suite.run(GATE)
    assert mark(suite) is None
    assert head(suite.path) == PASSED


@pytest.mark.parametrize(
    ("broken", "args", "why"),
    [
        (TEST, ["--rag-k=many"], "k is 'many'"),
        (TEST, ["--rag-gate=e3: recall@5 >> 1"], "recall@5 >> 1"),
        ("raise RuntimeError('gone')", [], "tests could not be collected."),
        ("raise RuntimeError('gone')", ["-n2"], "tests could not be collected."),
        ("def test_first():\n    raise KeyboardInterrupt\n" + TEST, [], "it was interrupted."),
    ],
    ids=["setting", "gate", "collection", "collection by workers", "interrupt"],
)
def test_whatever_ends_a_run_before_its_first_question_is_said(
    after_a_run: Suite, broken: str, args: list[str], why: str
) -> None:
    suite = after_a_run
    suite.pytester.makepyfile(broken)
    assert suite.run(GATE, *args).ret != 0
    found = mark(suite)
    assert found is not None
    assert why in found["why"]
    assert head(suite.path) == STALE


def test_a_killed_run_leaves_its_mark(after_a_run: Suite) -> None:
    suite = after_a_run
    suite.pytester.makepyfile(f"def test_first():\n    import os\n    os._exit(9)\n{TEST}")
    suite.run(GATE)
    assert mark(suite) is not None
    assert head(suite.path) == STALE


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(["--collect-only"], marks=pytest.mark.long),
        ["--help"],
        ["--rag-k=many", "--collect-only"],
        ["test_other.py"],
        ["test_bad.py"],
    ],
    ids=["collect", "help", "collect with a bad setting", "other tests", "other tests that cannot be collected"],
)
def test_what_asks_for_no_question_leaves_no_mark(after_a_run: Suite, args: list[str]) -> None:
    suite = after_a_run
    (suite.path / "test_other.py").write_text("def test_it():\n    assert 1 == 2\n")
    (suite.path / "test_bad.py").write_text("raise RuntimeError('gone')\n")
    suite.run(GATE, *args)
    assert mark(suite) is None
    assert head(suite.path) == PASSED


def test_a_setting_that_cannot_be_used_makes_no_folder(suite: Suite) -> None:
    assert suite.run("--rag-k=many").ret == pytest.ExitCode.USAGE_ERROR
    assert not (suite.path / "output").exists()


def test_a_run_that_was_interrupted_after_an_answer_has_left_results(after_a_run: Suite) -> None:
    suite = after_a_run
    file = suite.path / "output" / "summary.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "run": "2026-01-01T00:00:00+00:00"}))  # not this second
    stop = "    if rag_result.query_id == 'q_direct_002':\n        raise KeyboardInterrupt\n"
    suite.pytester.makepyfile(TEST + stop)
    suite.run(GATE)
    assert mark(suite) is None
    assert head(suite.path).startswith("## ❔ NO VERDICT: this folder has no summary.json of the run")


WRONG = "    assert rag_result.query_id != 'q_direct_001', 'wrong'\n"


@pytest.mark.parametrize("stop", ["-x", pytest.param("--maxfail=1", marks=pytest.mark.long)])
def test_what_pytest_stopped_before_is_not_asked_and_its_gates_are_not_judged(suite: Suite, stop: str) -> None:
    suite.pytester.makepyfile(TEST + WRONG)
    result = suite.run(stop, "--rag-gate=e3: recall@5 >= 0.5", "--rag-gate=e3: error_rate <= 0.2")
    assert result.ret == 1
    record = json.loads((suite.path / "output" / "run.json").read_text())
    assert (len(record["suites"]["e3"]["not_run"]), record["suites"]["e3"]["lost"]) == (3, [])
    text = result.stdout.str()
    assert "crash" not in text
    assert "untested: 3 trials; pytest stopped after the first failure." in text
    assert text.count("3 cases untested: pytest stopped after the first failure") >= 1
    assert "stopping after 1 failures" in text
    assert "1 failed, 2 gates not judged" in text
    assert head(suite.path) == "## ❌ FAIL: 1 of 1 question failed; 2 gates not judged"
    comment = (suite.path / "comment.md").read_text(encoding="utf-8")
    assert "3 questions were left untested: pytest stopped after the first failure." in comment


def test_a_gate_that_fails_whatever_else_is_answered_fails(suite: Suite) -> None:
    suite.pytester.makepyfile(TEST + WRONG)
    result = suite.run("-x", "--rag-gate=e3: token_f1 >= 0.99", "--rag-gate=e3: recall@5 >= 0.5")
    result.stdout.fnmatch_lines(
        ["failed *e3: token_f1 >= 0.99 *", "*3 cases untested: pytest stopped after the first failure*"]
    )
    verdicts = json.loads((suite.path / "output" / "summary.json").read_text())["gates"]
    assert [each["state"] for each in verdicts] == ["failed", "not judged"]


def test_a_test_that_broke_before_it_asked_has_lost_its_question(suite: Suite) -> None:
    broken = "\n@pytest.fixture(autouse=True)\ndef broken():\n    raise RuntimeError('broken')\n"
    suite.pytester.makepyfile(TEST + broken)
    suite.run("-x", GATE)
    record = json.loads((suite.path / "output" / "run.json").read_text())["suites"]["e3"]
    assert (len(record["not_run"]), len(record["lost"])) == (3, 1)


@pytest.mark.parametrize("args", [pytest.param([], marks=pytest.mark.long), ["-v"], ["-x"], ["-n2"]])
def test_a_failed_gate_is_called_failed_in_the_short_summary_and_is_no_dot(suite: Suite, args: list[str]) -> None:
    lines = suite.run("--rag-gate=e3: token_f1 >= 0.99", *args).outlines
    assert [line for line in lines if "rag gate::" in line] == [
        line for line in lines if line.startswith("FAILED rag gate::e3: token_f1 >= 0.99")
    ]
    assert sum(line.startswith("FAILED rag gate::") for line in lines) == 1
    assert not any("stopping after" in line for line in lines)
