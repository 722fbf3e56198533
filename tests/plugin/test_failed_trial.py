"""The message of a failed trial: four lines of 80 columns, and all of pytest's with -vv."""

from __future__ import annotations

import re

import pytest

from rag_harness.__main__ import main
from rag_harness.frontends.pytest_plugin.trial_report import is_short
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
    return fail(suite)


def fail(suite: Suite) -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_lamps=_TESTS)
    suite.write_queries([{**QUERIES[1], "query": _LONG}])
    return suite


@pytest.fixture(scope="module", params=["-n2", pytest.param("-n0", marks=pytest.mark.long)])
def failed(shared_suite: Suite, request: pytest.FixtureRequest) -> tuple[Suite, pytest.RunResult]:
    return shared_suite, fail(shared_suite).run(request.param, "--rag-concurrency=4", "--rag-overwrite")


def messages(result: pytest.RunResult) -> dict[str, str]:
    """Return what is printed of each failed test, by its name."""
    return {name.split("[")[0]: text for name, text in _FAILURE.findall(result.stdout.str())}


def test_what_is_said_by_default(failed: tuple[Suite, pytest.RunResult], snapshot: object) -> None:
    _, result = failed
    said = messages(result)
    with_error = said.pop("test_with_an_error")
    assert "KeyError: 'q_direct_002'" in with_error
    assert "{}[rag_result.query_id]" in with_error, "an error in the test itself keeps its traceback"
    text = "\n".join(f"{name}\n{message}" for name, message in sorted(said.items()))
    assert text == snapshot
    said_by_us = [line for line in text.splitlines() if "assert " not in line and "where " not in line]
    assert max(map(len, said_by_us)) <= 80
    result.stdout.fnmatch_lines(["FAILED *TestBroken::test_answers* - Asser*"])


@pytest.mark.parametrize("asked", [[], ["-v"], ["-q"], ["--tb=auto"]])
def test_who_asks_for_no_more_gets_four_lines(pytester: pytest.Pytester, asked: list[str]) -> None:
    assert is_short(pytester.parseconfig(*asked))


@pytest.mark.parametrize("more", ["-vv", "--tb=long", "--tb=short", "--showlocals", "--full-trace", "--pdb"])
def test_it_is_not_shortened_for_who_asks_for_more(pytester: pytest.Pytester, more: str) -> None:
    assert not is_short(pytester.parseconfig(more))


@pytest.mark.parametrize(
    "more", ["-vv", *(pytest.param(more, marks=pytest.mark.long) for more in ("--tb=long", "--showlocals"))]
)
def test_who_asks_for_more_gets_all(failing: Suite, more: str) -> None:
    said = messages(failing.run(more))
    assert "rag_result = ExperimentResult(query_id='q_direct_002'" in said["test_days"]
    assert '>       assert "45" in rag_result.llm_answer' in said["test_days"]
    assert "command" not in said["test_days"]


def test_the_command_shows_the_whole_trial(
    failed: tuple[Suite, pytest.RunResult], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    suite, result = failed
    command = messages(result)["TestBroken.test_answers"].splitlines()[-1].split()
    assert command[:3] == ["command", "rag-harness", "explain"]
    monkeypatch.chdir(suite.path)
    assert main(command[2:]) == 0
    shown = pytest.LineMatcher(capsys.readouterr().out.splitlines())
    shown.fnmatch_lines(["trial *broken-q_direct_002", "error *pipeline: ValueError: the lamp broke"])
