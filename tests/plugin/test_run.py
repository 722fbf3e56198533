"""Runs of a small suite, as a user sees them."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.plugin.conftest import QUERIES, Suite, files_below


@pytest.mark.parametrize(
    "workers",
    [(), *(pytest.param((each,), marks=pytest.mark.long) for each in ("-n0", "-n2"))],
    ids=["plain", "n0", "n2"],
)
def test_every_query_is_a_test_and_a_row(suite: Suite, workers: tuple[str, ...]) -> None:
    shutil.rmtree(suite.path / ".rag_cache")  # nothing is kept: what these runs need, they build
    result = suite.run("-v", *workers)
    result.assert_outcomes(passed=4)
    assert "[e3-q_direct_001]" in result.stdout.str()
    rows = suite.rows()
    assert sorted(str(row["query_id"]) for row in rows) == sorted(str(query["query_id"]) for query in QUERIES)
    assert {row["status"] for row in rows} == {"ok"}
    result.stdout.fnmatch_lines(["*= rag =*", "profile mock, mode auto, answers by mock/placeholder*", "e3 * 4 * 0 *"])


def test_a_few_shipped_trials_that_only_compute_start_no_worker(suite: Suite) -> None:
    result = suite.run("-m", "e3", "-n", "4")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["rag: -n 4 starts no worker here: *"])
    result.stdout.no_fnmatch_line("*bringing up nodes*")
    assert len(suite.rows()) == 4


def test_second_run_resumes_and_judges_again(suite: Suite) -> None:
    suite.run().assert_outcomes(passed=4)
    before = suite.rows()
    suite.pytester.makepyfile(
        """
        import pytest

        @pytest.mark.e3
        def test_answers(rag_result):
            assert rag_result.query_id != "q_direct_002"
        """
    )
    result = suite.run()
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["answers: 4 reused from the run of * UTC; 0 new"])
    assert suite.rows() == before


def test_other_settings_move_old_rows_aside(suite: Suite) -> None:
    suite.run("-k", "q_direct")
    result = suite.run("--rag-top-k=2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["3 rows of an earlier run were moved to output/previous/."])
    kept = [file for file in files_below(suite.path / "output") if file.startswith("previous/")]
    assert len(kept) == 1
    assert len((suite.path / "output" / kept[0]).read_text().splitlines()) == 3
    assert len(suite.rows()) == 4


def test_overwrite_starts_anew(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    suite.run()
    first = suite.rows()
    monkeypatch.setenv("OVERWRITE", "true")
    suite.run("-n2").assert_outcomes(passed=4)
    second = suite.rows()
    assert len(second) == 4
    assert {row["finished_at"] for row in first}.isdisjoint({row["finished_at"] for row in second})


@pytest.mark.parametrize("workers", [(), pytest.param(("-n2",), marks=pytest.mark.long)], ids=["plain", "n2"])
def test_a_failed_query_is_a_row_and_the_others_go_on(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.pytester.makeconftest(BROKEN)
    result = suite.run(*workers)
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["*pipeline: RuntimeError: the lamp broke*", "error e3-q_direct_001: pipeline:*"])
    assert result.stdout.str().count("Traceback") == 0
    rows = {row["query_id"]: row for row in suite.rows()}
    assert rows["q_direct_001"]["status"] == "error"
    assert rows["q_direct_001"]["error"] == {"stage": "pipeline", "type": "RuntimeError", "message": "the lamp broke"}


def test_errors_are_tried_again_and_leave_the_file(suite: Suite) -> None:
    suite.pytester.makeconftest(BROKEN)
    suite.run()
    (suite.path / "mended").touch()
    result = suite.run()
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["e3 * 4 * 0 * 3 *"])
    rows = suite.rows()
    assert len(rows) == 4
    assert all(row["status"] == "ok" for row in rows)


BROKEN = """
import pytest
from pathlib import Path

class Mine:
    fingerprint = "1"

    async def answer(self, query):
        if "lamp" in query.text and not Path("mended").exists():
            raise RuntimeError("the lamp broke")
        return "I don't know"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Mine()
"""


def test_a_critical_failure_stops_the_run(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        import pytest
        from rag_harness.core.errors import CriticalError

        class Mine:
            async def answer(self, query):
                raise CriticalError("the key was refused")

        @pytest.fixture
        def rag_pipeline():
            return Mine()
        """
    )
    result = suite.run("--rag-concurrency=1")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*Interrupted: rag_harness: pipeline: CriticalError: the key was refused*"])
    assert len(suite.rows()) == 1


def test_selection_runs_only_what_was_selected(suite: Suite) -> None:
    suite.pytester.makeconftest(COUNTING)
    suite.run("-k", "q_direct_002").assert_outcomes(passed=1, deselected=3)
    assert _calls(suite) == ["q_direct_002"]


@pytest.mark.parametrize(
    "workers", ["0", pytest.param("1", marks=pytest.mark.long), "2", pytest.param("4", marks=pytest.mark.long)]
)
def test_calls_equal_trials_under_any_number_of_workers(suite: Suite, workers: str) -> None:
    suite.write_queries([{"query_id": f"q_{n:03}", "query": f"question {n}"} for n in range(40)])
    suite.pytester.makeconftest(COUNTING)
    suite.run("-n", workers, "--rag-concurrency=4").assert_outcomes(passed=40)
    assert (
        sorted(_calls(suite))
        == sorted(str(row["query_id"]) for row in suite.rows())
        == [f"q_{n:03}" for n in range(40)]
    )


COUNTING = """
import os
import pytest

class Mine:
    async def answer(self, query):
        with open(os.path.join(os.path.dirname(__file__), "calls.txt"), "a") as calls:
            calls.write(query.query_id + "\\n")
        return "I don't know"

@pytest.fixture(scope="session")
def rag_pipeline():
    return Mine()
"""


def _calls(suite: Suite) -> list[str]:
    return (suite.path / "calls.txt").read_text().splitlines()


def test_collect_only_builds_nothing(suite: Suite) -> None:
    (suite.path / "kb" / "returns.md").write_bytes(b"\xff\xfe not UTF-8")
    shutil.rmtree(suite.path / ".rag_cache")
    suite.run("--collect-only", "-q").stdout.fnmatch_lines(["*e3-q_direct_001*", "4 tests collected*"])
    assert not (suite.path / "output").exists()
    assert not (suite.path / ".rag_cache").exists()


def test_last_failed_runs_the_failed_again(suite: Suite) -> None:
    suite.pytester.makeini("[pytest]\nrag_kb_dir = kb\nrag_profile = mock\n")
    suite.pytester.makeconftest(BROKEN)
    suite.run()
    (suite.path / "mended").touch()
    suite.run("--lf").assert_outcomes(passed=1)


def test_exitfirst_stops_early_and_keeps_what_came_back(suite: Suite) -> None:
    suite.pytester.makeconftest(BROKEN)
    result = suite.run("-x", "--rag-concurrency=1")
    result.assert_outcomes(failed=1)
    rows = [row["query_id"] for row in suite.rows()]
    assert rows[0] == "q_direct_001"
    assert len(rows) == len(set(rows))
    assert "output/journal" not in {file.rpartition("/")[0] for file in files_below(suite.path)}
    assert "Task was destroyed" not in result.stderr.str()


def test_hook_sees_each_result_once(suite: Suite) -> None:
    suite.pytester.makeconftest(
        """
        def pytest_rag_result(result, config):
            with open("seen.txt", "a") as seen:
                seen.write(result.query_id + "\\n")
        """
    )
    suite.pytester.makepyfile(
        """
        import pytest
        pytestmark = pytest.mark.e3
        def test_answers(rag_result): pass
        def test_answers_again(rag_result): pass
        """
    )
    suite.run("-n2").assert_outcomes(passed=8)
    assert len((suite.path / "seen.txt").read_text().splitlines()) == 4
    assert len(suite.rows()) == 4


def test_two_experiments_in_one_test(suite: Suite) -> None:
    suite.pytester.makepyfile(
        """
        import pytest
        @pytest.mark.e1
        @pytest.mark.e2
        def test_both(rag_result): assert rag_result.ok
        """
    )
    suite.run().assert_outcomes(passed=8)
    assert len(suite.rows("e1_baseline")) == 4
    assert len(suite.rows("e2_standard_rag")) == 4


def test_row_has_all_fields(suite: Suite) -> None:
    suite.run("-k", "q_direct_001")
    row = suite.rows()[0]
    assert row["experiment"] == "e3"
    assert row["context_reference"] == ["returns.md"]
    chunks = row["retrieved_chunks"]
    assert isinstance(chunks, list)
    assert chunks[0]["chunk_id"] == "returns.md#chunk_0"
    assert chunks[0]["rerank_score"] is not None
    nothing = {
        "version": None,
        "date": None,
        "markup": None,
        "module": None,
        "chapter": None,
        "url": None,
        "page": None,
        "last_page": None,
    }
    where = {"filename": "returns.md", "section": "Returns", **nothing}
    assert chunks[0]["metadata"] == where
    assert set(chunks[0]["scores"]) == {"dense", "rerank"}
    stages = row["stages"]
    assert isinstance(stages, list)
    assert [stage["name"] for stage in stages] == ["retrieve", "rerank", "prompt", "generate", "parse"]
    (call,) = stages[3]["calls"]
    sent = json.loads((suite.path / "output" / "prompts" / f"{call['prompt']}.json").read_text())
    assert [message["role"] for message in sent] == ["system", "user"]
    assert "return a lamp" in sent[1]["content"]
    assert row["reasoning_steps"] is None
    assert row["dry_run"] is False
    assert json.loads(str(row["raw_output"]))["answer"] == row["llm_answer"]


def test_dry_run_is_replay(suite: Suite, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRY_RUN", "true")
    suite.run("-m", "e1")
    suite.pytester.makepyfile(TEST_E1)
    suite.run().assert_outcomes(passed=4)
    assert {row["dry_run"] for row in suite.rows("e1_baseline")} == {True}


TEST_E1 = """
import pytest
@pytest.mark.e1
def test_answers(rag_result): assert rag_result.ok
"""


def test_log_is_a_file_only(suite: Suite) -> None:
    suite.pytester.makeconftest(BROKEN)
    result = suite.run()
    log = (suite.path / "logs" / "e2_to_e4.log").read_text()
    assert "ERROR e3-q_direct_001: pipeline failed" in log
    assert "RuntimeError: the lamp broke" in log
    assert "Captured log" not in result.stdout.str()


@pytest.mark.parametrize("workers", [(), pytest.param(("-n2",), marks=pytest.mark.long)], ids=["plain", "n2"])
def test_trials_of_a_pipeline_of_ones_own_are_in_flight_together(suite: Suite, workers: tuple[str, ...]) -> None:
    suite.write_queries([{"query_id": f"q_{n:02}", "query": f"question {n}"} for n in range(8)])
    suite.pytester.makeconftest(
        """
        import asyncio
        import pytest

        class Mine:
            waiting = 0

            async def answer(self, query):
                self.waiting += 1
                for _ in range(500):
                    if self.waiting >= 2:
                        return "together"
                    await asyncio.sleep(0.01)
                return "alone"

        @pytest.fixture(scope="session")
        def rag_pipeline():
            return Mine()
        """
    )
    suite.run(*workers, "--rag-concurrency=8").assert_outcomes(passed=8)
    assert {row["llm_answer"] for row in suite.rows()} == {"together"}
