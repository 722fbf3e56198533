"""Failed and skipped trials: their messages, running them again, and a question that ends its worker."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from xml.etree import ElementTree

import pytest

from rag_harness.__main__ import main
from rag_harness.frontends.pytest_plugin.failure_messages import is_short
from tests.plugin.conftest import QUERIES, Suite
from tests.plugin.test_judged_once import RERUN
from tests.plugin.test_trust import FILE, Shop, open_shop, shop, tested
from tests.unit.server import as_json, serving

__all__ = ["open_shop", "shop", "tested"]


# The message of a failed trial: four lines of 80 columns, and all of pytest's with -vv.

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


# Failures that say the same are printed once, with their number; -vv prints each, and other formats keep each.

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


# A trial whose test is skipped is told as skipped: it is not lost, and no gate counts it or leaves it out.

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


# A test that failed and is run again asks again, and its row replaces the failed one; else the run says so.

NEW = "1 test failed and was run again on a new answer, whose row replaced the failed one"
SAME = "1 test failed and was run again on the same answer"
# As later releases of pytest-rerunfailures: the teardown of the attempt that failed is reported, too.
WHOLE = (
    RERUN.replace("                break\n", "                again = True\n                continue\n")
    .replace("        else:\n            break\n", "        if not again:\n            break\n")
    .replace("        item._initrequest()\n", "        item._initrequest()\n        again = False\n")
)
SUITE = """
import pytest

class Shop:
    fingerprint = "1"

    def __init__(self):
        self.asked = []

    def answer(self, query):
        self.asked.append(query.text)
        return f"answer {{self.asked.count(query.text)}}"

SHOP = Shop()

@pytest.fixture(scope="session")
def rag_pipeline():
    return SHOP

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    {failing}

def test_asked():
    assert len(SHOP.asked) == {calls}
"""
FIRST = 'assert rag_result.query_id != "q_direct_002" or rag_result.llm_answer != "answer 1"'
ALWAYS = 'assert rag_result.query_id != "q_direct_002"'


def prepared(suite: Suite, calls: int, failing: str = FIRST, conftest: str = WHOLE, more: str = "") -> Suite:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_only=SUITE.format(failing=failing, calls=calls) + more)
    suite.pytester.makeconftest(conftest)
    return suite


def answers(suite: Suite) -> dict[str, str]:
    lines = (suite.path / "output" / "mine.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == len({row["query_id"] for row in rows})
    return {row["query_id"]: row["llm_answer"] for row in rows}


@pytest.mark.parametrize("conftest", [RERUN, WHOLE], ids=["without its teardown", "whole"])
def test_a_test_that_failed_is_run_again_on_a_new_answer(suite: Suite, conftest: str) -> None:
    prepared(suite, 5, conftest=conftest)
    result = suite.run("-n0")
    result.assert_outcomes(passed=5)
    assert NEW in said_of(result)
    assert answers(suite)["q_direct_002"] == "answer 2"
    assert set(answers(suite).values()) == {"answer 1", "answer 2"}


def test_quiet_says_so_and_the_next_run_takes_the_new_answer_over(
    suite: Suite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAG_SECTIONS")
    prepared(suite, 5)
    assert NEW in said_of(suite.run("-q"))
    later = suite.run("-q", "--deselect=test_only.py::test_asked")
    later.stdout.fnmatch_lines(["answers: 4 reused *; 0 new"])
    assert answers(suite)["q_direct_002"] == "answer 2"


@pytest.mark.parametrize("workers", [pytest.param("-n2", marks=pytest.mark.long)])
def test_workers_ask_again_as_well(suite: Suite, workers: str) -> None:
    prepared(suite, 5)
    result = suite.run(workers, "--deselect=test_only.py::test_asked")
    result.assert_outcomes(passed=4)
    assert NEW in said_of(result)
    assert answers(suite)["q_direct_002"] == "answer 2"


def test_what_fails_again_is_a_failure_of_the_new_answer(suite: Suite) -> None:
    prepared(suite, 5, failing=ALWAYS)
    result = suite.run()
    result.assert_outcomes(passed=4, failed=1)
    assert answers(suite)["q_direct_002"] == "answer 2"


@pytest.mark.parametrize(
    ("args", "more"),
    [
        (("--rag-measures=faithfulness",), ""),
        ((), "\n@pytest.mark.rag_experiment('mine')\ndef test_more(rag_result):\n    pass\n"),
    ],
    ids=["judged", "shared"],
)
def test_an_answer_that_others_look_at_is_not_asked_again_and_that_is_said(
    suite: Suite, args: tuple[str, ...], more: str
) -> None:
    prepared(suite, 4, more=more)
    result = suite.run(*args)
    assert result.parseoutcomes()["failed"] == 1
    assert SAME in said_of(result)
    assert set(answers(suite).values()) == {"answer 1"}


@pytest.mark.parametrize(("mode", "calls", "said"), [("live", 5, NEW), ("record", 4, SAME), ("auto", 4, SAME)])
def test_a_service_is_asked_again_where_its_answer_is_not_recorded(
    tested: Suite, shop: Shop, mode: str, calls: int, said: str
) -> None:
    wrong = "    assert rag_result.query_id != 'q_direct_002'\n"
    tested.pytester.makepyfile(
        test_shop=f"import pytest\n\n@pytest.mark.rag_experiment('shop')\ndef test_it(rag_result):\n{wrong}"
    )
    tested.pytester.makeconftest(WHOLE)
    if mode == "auto":
        tested.run(FILE, "--rag-mode=record")
    result = tested.run(FILE, f"--rag-mode={mode}")
    assert said in said_of(result)
    assert len(shop.asked) == calls


@pytest.mark.skipif(find_spec("pytest_rerunfailures") is None, reason="needs pytest-rerunfailures")
@pytest.mark.parametrize("workers", ["-n0", pytest.param("-n2", marks=pytest.mark.long)])
def test_beside_pytest_rerunfailures(suite: Suite, workers: str) -> None:
    prepared(suite, 5, conftest="")
    result = suite.run("--reruns=2", workers, "--deselect=test_only.py::test_asked")
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["rerun"]) == (4, 1)
    assert NEW in said_of(result)
    assert answers(suite)["q_direct_002"] == "answer 2"


# A question that ends its worker costs that question: one test fails, the others run, whatever hands them out.

KILLING_QUESTION_PIPELINE = """
import os
import pytest

class Killing:
    async def answer(self, query):
        if "KILL" in query.text:
            os._exit(9)
        return "45 days"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Killing()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok
"""


@pytest.mark.parametrize(
    "dist", ["load", *(pytest.param(d, marks=pytest.mark.long) for d in ("loadfile", "loadscope", "loadgroup"))]
)
def test_it_fails_once_and_the_others_run(suite: Suite, dist: str) -> None:
    (suite.path / "test_killing.py").write_text(KILLING_QUESTION_PIPELINE, encoding="utf-8")
    asked = [{"query_id": f"q{n}", "query": f"Lamp {n}?" + " KILL" * (n == 5)} for n in range(8)]
    suite.write_queries([{**each, "ground_truth": "45 days"} for each in asked])
    result = suite.run("test_killing.py", "-n", "2", f"--dist={dist}")
    result.assert_outcomes(passed=7, failed=1)
    result.stdout.fnmatch_lines(["*crashed while running 'test_killing.py::test_answers?mine-q5?'"])
    assert {row["query_id"] for row in suite.rows("mine")} == {f"q{n}" for n in range(8)} - {"q5"}
