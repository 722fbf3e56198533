"""Judged scores where a trial is asked for more than once, or not by who has judged it: none lost, none paid twice."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.test_judged import asked, judged, scores

__all__ = ["judged"]


FAITHFUL = "--rag-measures=faithfulness"
GATE = "--rag-gate=e3: faithfulness >= 0"

# What pytest-rerunfailures does: of an attempt that failed, the report of the teardown reaches nobody.
RERUN = """
from _pytest.runner import runtestprotocol

def pytest_runtest_protocol(item, nextitem):
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for attempt in range(2):
        item._initrequest()
        for report in runtestprotocol(item, nextitem=nextitem, log=False):
            if report.failed and not attempt:
                report.outcome = "rerun"
                item.ihook.pytest_runtest_logreport(report=report)
                break
            item.ihook.pytest_runtest_logreport(report=report)
        else:
            break
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
"""
FLAKY = """
import pytest
failed = set()

@pytest.mark.e3
def test_answers(rag_result, rag_scores):
    value = rag_scores["faithfulness"].value
    if rag_result.query_id not in failed:
        failed.add(rag_result.query_id)
        raise AssertionError(value)
"""


def only(suite: Suite, text: str) -> None:
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_only=text)


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_test_that_is_run_again_loses_no_score_and_asks_no_judge_again(judged: Suite, is_resumed: bool) -> None:
    if is_resumed:
        judged.run().assert_outcomes(passed=4)
    only(judged, FLAKY)
    with (judged.path / "conftest.py").open("a") as conftest:
        conftest.write(RERUN)
    result = judged.run(FAITHFUL, GATE)
    result.stdout.fnmatch_lines(["judged by mock/word-overlap*", "passed      e3: faithfulness >= 0 *n=4*"])
    assert len(asked(judged)) == 4


TWO = """
import pytest

@pytest.mark.e3
def test_one(rag_result, rag_scores):
    assert rag_scores["faithfulness"].value is not None

@pytest.mark.e3
def test_two(rag_result, rag_scores):
    assert rag_scores["faithfulness"].value is not None
"""


@pytest.mark.parametrize(
    ("measures", "is_resumed"),
    [
        ([], True),
        *(
            pytest.param(*each, marks=pytest.mark.long)
            for each in (([FAITHFUL], False), ([FAITHFUL], True), ([], False))
        ),
    ],
)
def test_two_tests_of_a_trial_ask_the_judge_once(judged: Suite, measures: list[str], is_resumed: bool) -> None:
    if is_resumed:
        judged.run().assert_outcomes(passed=4)
    only(judged, TWO)
    judged.run(*measures).assert_outcomes(passed=8)
    assert len(asked(judged)) == 4


AT_ONCE = """
import asyncio
now, most = 0, 0

async def slow(self, claims, source):
    global now, most
    now += 1
    most = max(most, now)
    await asyncio.sleep(0.1)
    now -= 1
    return await real(self, claims, source)

mock.MockOpinion.supported = slow

def pytest_unconfigure():
    print("at once:", most)
"""


def test_rows_that_are_there_are_judged_ahead_of_their_tests_as_well(judged: Suite) -> None:
    judged.run().assert_outcomes(passed=4)
    with (judged.path / "conftest.py").open("a") as conftest:
        conftest.write(AT_ONCE)
    judged.run(FAITHFUL, "-s").stdout.fnmatch_lines(["at once: 4"])


TWO_ANSWERS = """
import os
import pytest

class Pipeline:
    def answer(self, query):
        return f"return a lamp, says {os.environ['PYTEST_XDIST_WORKER']}"

@pytest.fixture
def rag_pipeline():
    return Pipeline()

@pytest.mark.e3
@pytest.mark.parametrize("n", [0, 1])
def test_it(rag_result, n):
    assert rag_result.ok
"""


@pytest.mark.parametrize("runs", [1, pytest.param(2, marks=pytest.mark.long)])
def test_scores_of_a_row_that_was_not_taken_are_not_taken(judged: Suite, runs: int) -> None:
    """Two workers run one trial, as with --dist=each; the first row counts, and what is said of it."""
    only(judged, TWO_ANSWERS)
    for _ in range(runs):
        gate = "--rag-gate=e3: factuality >= 0"
        result = judged.run("--rag-measures=factuality", "-n2", "--dist=each", "--rag-overwrite", gate)
    result.stdout.fnmatch_lines(["passed      e3: factuality >= 0 *n=3*"])
    lines = scores(judged)
    assert len(lines) == len({line["query_id"] for line in lines}) == 3


def test_what_a_worker_that_died_has_judged_counts(judged: Suite) -> None:
    crash = (
        "import os, pytest\n\n@pytest.mark.e3\ndef test_answers(rag_result, rag_scores):\n"
        "    rag_scores['faithfulness']\n"
        "    if rag_result.query_id == 'q_direct_002' and not os.path.exists('died'):\n"
        "        open('died', 'w').close()\n        import time; time.sleep(0.3); os._exit(1)\n"
    )
    only(judged, crash)
    result = judged.run(FAITHFUL, GATE, "-n2")
    assert (judged.path / "died").exists()
    result.stdout.no_fnmatch_line("*could not be measured*")
    result.stdout.no_fnmatch_line("*no judgement*")
    assert len(asked(judged)) == 4
