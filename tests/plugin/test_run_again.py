"""A test that failed and is run again asks again, and its row replaces the failed one; else the run says so."""

from __future__ import annotations

import json
from importlib.util import find_spec

import pytest

from tests.plugin.conftest import Suite
from tests.plugin.test_judged_once import RERUN
from tests.plugin.test_trust import FILE, Shop, open_shop, shop, tested

__all__ = ["open_shop", "shop", "tested"]


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


def said_of(result: pytest.RunResult) -> str:
    return " ".join(result.stdout.str().split())


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
