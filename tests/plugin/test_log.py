"""What stands in the log file of a run, in one process and in several."""

from __future__ import annotations

import pytest

from tests.plugin.conftest import QUERIES, Suite

OWN = """
import pytest

class Mine:
    def answer(self, query):
        return "45 days"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Mine()

@pytest.mark.rag_experiment("mine")
def test_answers(rag_result):
    assert rag_result.ok
"""


def logged(suite: Suite) -> list[str]:
    return (suite.path / "logs" / "e2_to_e4.log").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_settings_and_rows_stand_there_once(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write_queries([*QUERIES, {"query_id": "bad", "query": " "}])
    suite.run("--rag-bad-queries=skip", *workers).assert_outcomes(passed=4)
    lines = logged(suite)
    for once in (" INFO Settings: ", " INFO Read 4 queries: ", " INFO Skipped: "):
        assert len([line for line in lines if once in line]) == 1, once
    rows = [line.partition(" main INFO ")[2] for line in lines if " main INFO e3: " in line]
    assert [row.partition(":")[0] + row.partition(":")[2].partition(",")[0][:5] for row in rows] == [
        f"e3 {n}/4:" for n in range(1, 5)
    ]
    assert {row.rpartition(" query ")[2] for row in rows} == {query["query_id"] for query in QUERIES}


def test_the_debug_line_of_a_trial_says_what_was_found_and_sent(suite: Suite) -> None:
    suite.run("-k", "q_direct_001").assert_outcomes(passed=1)
    (line,) = [line for line in logged(suite) if " DEBUG e3-q_direct_001: " in line]
    assert "; found returns.md#chunk_0 0." in line
    assert "; in the prompt returns.md#chunk_0 0." in line
    assert line.endswith("prompt tokens, 0 answered, 1 call; retries 0")


def test_a_query_that_is_not_asked_again_is_logged_with_its_reason(suite: Suite) -> None:
    suite.run()
    suite.run()
    assert sum(line.endswith(": skipped, an earlier run has its row") for line in logged(suite)) == len(QUERIES)


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_experiment_of_ones_own_has_a_log_of_its_name(suite: Suite, workers: tuple[str, ...]) -> None:
    (suite.path / "test_own.py").write_text(OWN, encoding="utf-8")
    suite.run("test_own.py", *workers).assert_outcomes(passed=4)
    (log,) = (suite.path / "logs").iterdir()
    assert log.name == "mine.log"
    assert " INFO Settings: " in log.read_text(encoding="utf-8")
