"""A trial whose test is skipped is told as skipped: it is not lost, and no gate counts it or leaves it out."""

from __future__ import annotations

import json

import pytest

from tests.plugin.conftest import Suite

BY_MARK = """
import pytest

@pytest.mark.{mark}
@pytest.mark.e3
def test_answers(rag_result):
    pass
"""
ONE = """
import pytest

@pytest.fixture(autouse=True)
def spared(rag_trial):
    if rag_trial.id.query_id == "{case}":
        pytest.skip("the lamp is lent")

@pytest.mark.e3
def test_answers(rag_result):
    assert rag_result.ok
"""
CASE = ("q_direct_001", "q_negative_001")
GATE = "--rag-gate=e3: recall@5 >= 0.5"


def said_of(result: pytest.RunResult) -> str:
    return " ".join(result.stdout.str().split())


@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_a_skipped_trial_is_told_and_its_gates_are_not_judged(suite: Suite, workers: str) -> None:
    suite.pytester.makepyfile(ONE.format(case=CASE[0]))
    result = suite.run(GATE, workers)
    result.assert_outcomes(passed=3, skipped=1)
    said = said_of(result)
    assert "1 trial of e3 was skipped by its test: the lamp is lent" in said
    assert "not judged e3: recall@5 >= 0.5 1 of 4 cases skipped by its test: the lamp is lent; " in said
    assert "lost" not in said
    record = json.loads((suite.path / "output" / "run.json").read_text())["suites"]["e3"]
    assert (record["skipped"], record["lost"]) == ({CASE[0]: "the lamp is lent"}, [])
    assert CASE[0] not in record["selected"]
    assert suite.run(GATE, "--rag-not-judged=fail").ret == pytest.ExitCode.TESTS_FAILED


def test_a_part_is_judged_where_that_is_asked_for(suite: Suite) -> None:
    suite.pytester.makepyfile(ONE.format(case=CASE[0]))
    result = suite.run(GATE, "--rag-gate-partial")
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0.5*n=2*"])


def test_a_gate_on_other_questions_and_one_that_fails_anyway_are_judged(suite: Suite) -> None:
    suite.pytester.makepyfile(ONE.format(case=CASE[1]))
    other = "--rag-gate=e3[query_type=direct]: recall@5 >= 0.5"
    result = suite.run(other, "--rag-gate=e3: token_f1 >= 0.9")
    result.stdout.fnmatch_lines(["passed *e3[[]query_type=direct[]]: recall@5 >= 0.5*", "failed *e3: token_f1 >= 0.9*"])


@pytest.mark.parametrize(
    ("mark", "why"),
    [
        ("skip(reason='not today')", "not today"),
        ("skipif(True, reason='no service')", "no service"),
        ("skip", "unconditional skip"),
        ("xfail(run=False, reason='it hangs')", "it hangs"),
    ],
)
def test_a_mark_that_skips_all_leaves_nothing_to_judge(suite: Suite, mark: str, why: str) -> None:
    suite.pytester.makepyfile(BY_MARK.format(mark=mark))
    result = suite.run(GATE)
    said = said_of(result)
    assert f"4 trials of e3 were skipped by their tests: {why}" in said
    assert f"not judged e3: recall@5 >= 0.5 4 of 4 cases skipped by their tests: {why}" in said
    assert "no trial" not in said
    assert result.ret == pytest.ExitCode.OK


def test_a_trial_that_another_test_asks_is_not_skipped(suite: Suite) -> None:
    suite.pytester.makepyfile(f"{BY_MARK.format(mark='skip')}\n@pytest.mark.e3\ndef test_more(rag_result):\n    pass\n")
    result = suite.run(GATE)
    result.stdout.fnmatch_lines(["passed *e3: recall@5 >= 0.5*"])
    assert "skipped by" not in result.stdout.str()


def test_a_trial_whose_fixture_fails_is_still_lost(suite: Suite) -> None:
    fails = "@pytest.fixture\ndef rag_pipeline():\n    raise RuntimeError('no lamp')\n"
    more = "@pytest.mark.e3\ndef test_more(rag_result):\n    pass\n"
    suite.pytester.makepyfile(f"{BY_MARK.format(mark='skip')}\n{more}\n{fails}")
    result = suite.run(GATE)
    assert "lost to a crash" in said_of(result)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
