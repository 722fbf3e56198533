"""The message of a failed trial: four lines of 80 columns, and all of pytest's with -vv."""

from __future__ import annotations

import re

import pytest

from tests.plugin.conftest import QUERIES, Suite

_LONG = "express delivery costs in zone one when the parcel is heavier than two kilograms and is paid for already?"
_TESTS = """
import pytest

class Broken:
    async def answer(self, query):
        raise ValueError("the lamp broke")

class TestBroken:
    @pytest.fixture
    def rag_pipeline(self):
        return Broken()

    @pytest.mark.rag_experiment("broken")
    def test_answers(self, rag_result):
        assert rag_result.ok, rag_result.why

    @pytest.mark.rag_experiment("broken")
    def test_ok(self, rag_result):
        assert rag_result.ok

    @pytest.mark.rag_experiment("broken")
    def test_its_error(self, rag_result):
        assert rag_result.error.type == "KeyError"

@pytest.mark.e3
def test_days(rag_result):
    assert "45" in rag_result.llm_answer

@pytest.mark.e3
def test_short(rag_result):
    assert len(rag_result.llm_answer) < 3, "too long"

@pytest.mark.e3
def test_own_words(rag_result):
    pytest.fail("no\\nlamp", pytrace=False)

@pytest.mark.e3
def test_with_an_error(rag_result):
    {}[rag_result.query_id]
"""
_FAILURE = re.compile(r"^_+ (\S+) _+\n(?:\[gw\d\].*\n)?((?:(?!_{3}|===).*\n)*)", re.M)


@pytest.fixture
def failing(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_lamps=_TESTS)
    suite.write_queries([{**QUERIES[1], "query": _LONG}])
    return suite


def messages(result: pytest.RunResult) -> dict[str, str]:
    """Return what is printed of each failed test, by its name."""
    return {name.split("[")[0]: text for name, text in _FAILURE.findall(result.stdout.str())}


@pytest.mark.parametrize("workers", ["-n0", "-n2"])
def test_what_is_said_by_default(failing: Suite, workers: str, snapshot: object) -> None:
    result = failing.run(workers, "--rag-concurrency=4")
    said = messages(result)
    with_error = said.pop("test_with_an_error")
    assert "KeyError: 'q_direct_002'" in with_error
    assert "{}[rag_result.query_id]" in with_error, "an error in the test itself keeps its traceback"
    text = "\n".join(f"{name}\n{message}" for name, message in sorted(said.items()))
    assert text == snapshot
    said_by_us = [line for line in text.splitlines() if "assert " not in line and "where " not in line]
    assert max(map(len, said_by_us)) <= 80
    result.stdout.fnmatch_lines(["FAILED *TestBroken::test_answers* - Asser*"])


@pytest.mark.parametrize("more", ["-vv", "--tb=long", "--showlocals"])
def test_who_asks_for_more_gets_all(failing: Suite, more: str) -> None:
    said = messages(failing.run(more))
    assert "rag_result = ExperimentResult(query_id='q_direct_002'" in said["test_days"]
    assert '>       assert "45" in rag_result.llm_answer' in said["test_days"]
    assert "command" not in said["test_days"]


def test_the_command_shows_the_whole_trial(failing: Suite) -> None:
    command = messages(failing.run())["TestBroken.test_answers"].splitlines()[-1].split()
    assert command[:3] == ["command", "rag-harness", "explain"]
    shown = failing.pytester.run("rag-harness", *command[2:])
    assert shown.ret == 0
    shown.stdout.fnmatch_lines(["trial *broken-q_direct_002", "error *pipeline: ValueError: the lamp broke"])
