"""Failures that say the same are printed once, with their number; -vv prints each, and other formats keep each."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.plugin.conftest import Suite
from tests.unit.server import as_json, serving

N = 30
TEST = """
import pytest

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""
PIPELINE = """
import pytest

class Mine:
    def answer(self, query):
        {answers}

@pytest.fixture
def rag_pipeline():
    {made}
    return Mine()
"""


@pytest.fixture
def mine(suite: Suite) -> Suite:
    (only,) = suite.path.glob("test_*.py")
    only.rename(suite.path / "test_m.py").write_text(TEST)
    suite.write_queries([{"query_id": f"q_{n:03}", "query": f"lamp number {n} of the shop"} for n in range(N)])
    return suite


def write(suite: Suite, answers: str, made: str = "") -> None:
    (suite.path / "conftest.py").write_text(PIPELINE.format(answers=answers, made=made))


def said(result: pytest.RunResult, begin: str) -> list[str]:
    return [line for line in result.outlines if line.startswith(begin)]


@pytest.mark.parametrize("workers", ["-n2", pytest.param("-n0", marks=pytest.mark.long)])
def test_equal_failures_are_one_block_and_a_count_and_junit_has_each(mine: Suite, workers: str) -> None:
    write(mine, "raise RuntimeError('no lamp')")
    result = mine.run(workers, "--junitxml=junit.xml")
    result.assert_outcomes(failed=N)
    assert len(said(result, "asked ")) == len(said(result, "FAILED ")) == 1
    result.stdout.fnmatch_lines(
        [
            "*_ test_answers[[]mine-q_*[]] _*",
            "why      pipeline: RuntimeError: no lamp",
            f"alike    {N - 1} more: mine-q_*, mine-q_*, …",
            f"FAILED test_m.py::test_answers[[]mine-q_*[]] - {N} × *",
        ]
    )
    assert len(result.outlines) < 45
    cases = [*ElementTree.parse(mine.path / "junit.xml").iter("testcase")]
    messages = [failure.attrib["message"] for case in cases for failure in case.iter("failure")]
    assert len(messages) == N
    assert all("no lamp" in message and "×" not in message for message in messages)


def test_what_differs_by_question_or_by_chance_is_no_other_reason_and_what_is_one_is(mine: Suite) -> None:
    odd = "KeyError(query.query_id)"
    even = "RuntimeError(f'nothing for {query.text[:16]!r} in {object()} after 0.{query.query_id[-2:]} s')"
    write(mine, f"raise {odd} if int(query.query_id[-1]) % 2 else {even}")
    result = mine.run()
    assert len(said(result, "asked ")) == len(said(result, "FAILED ")) == 2
    assert len(said(result, f"alike    {N // 2 - 1} more: ")) == 2


def test_answers_that_differ_are_failures_that_differ(mine: Suite) -> None:
    (only,) = mine.path.glob("test_*.py")
    only.write_text(TEST.replace("rag_result.ok, rag_result.why", "rag_result.llm_answer == 'no'"))
    write(mine, "return 'the same' if query.query_id > 'q_001' else query.query_id * 2")
    result = mine.run()
    assert len(said(result, "asked ")) == 3
    assert len(said(result, f"alike    {N - 3} more: ")) == 1


@pytest.mark.parametrize("asked", ["-vv", "--tb=short"])
def test_who_asks_for_more_gets_each(mine: Suite, asked: str) -> None:
    write(mine, "raise RuntimeError('no lamp')")
    result = mine.run(asked)
    assert len(said(result, "FAILED ")) == N
    assert len(said(result, "E ")) >= N
    assert not said(result, "alike")


def test_a_fixture_that_fails_and_one_that_is_not_there_are_said_once(mine: Suite) -> None:
    write(mine, "return 'x'", made="raise OSError('no database at 0x7f0e1c')")
    result = mine.run()
    result.assert_outcomes(errors=N)
    assert len(said(result, "E ")) == len(said(result, "ERROR ")) == len(said(result, "alike ")) == 1
    (only,) = mine.path.glob("test_*.py")
    only.write_text(TEST.replace("(rag_result)", "(rag_result, lamp)"))
    result = mine.run()
    result.assert_outcomes(errors=N)
    assert len(said(result, "E ")) == len(said(result, "ERROR ")) == len(said(result, "alike ")) == 1


def test_a_wrong_path_into_the_answer_of_a_service_is_said_once(mine: Suite) -> None:
    with serving(as_json({"reply": "45 days"})) as server:
        (mine.path / "shop.toml").write_text(f'url = "{server.url}/query"\n[read]\nanswer = "answer"\n')
        result = mine.run("--rag-endpoint=shop.toml", "--rag-run=shop", "--rag-mode=live")
    result.assert_outcomes(failed=N, deselected=N)
    assert len(said(result, "asked ")) == len(said(result, "FAILED ")) == 1
    result.stdout.fnmatch_lines(["why *read.answer = 'answer' finds nothing*", f"alike    {N - 1} more: *"])


def test_failures_of_other_tests_are_left_as_they_are(mine: Suite) -> None:
    write(mine, "return 'x'")
    mine.pytester.makepyfile(
        test_other="import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_one(n): assert 0"
    )
    result = mine.run()
    result.assert_outcomes(passed=N, failed=3)
    assert len(said(result, "FAILED ")) == 3
