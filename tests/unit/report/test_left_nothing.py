"""What is said of a folder whose last run left no results."""

from __future__ import annotations

import json
from pathlib import Path

from rag_harness.page.badge import badge_of, status_by_gates
from rag_harness.report.left_nothing import said_of_last_run
from rag_harness.results.begun_run import BEGUN, BegunRun, read_begun, write_begun
from tests.unit.page.runs import gate, read, summarise, write_study

MARK = BegunRun(date="2026-02-03T04:05:00+00:00", command="pytest -q", why="The service\nis  down")


def test_why_when_which_command_and_of_what_the_rest_is(tmp_path: Path) -> None:
    write_study(tmp_path)
    assert said_of_last_run(tmp_path) == []
    write_begun(tmp_path, MARK)
    assert said_of_last_run(tmp_path) == [
        "The last run left no results: The service is down.",
        "What follows is of the run before it, of 1 Jan 2026 00:00 UTC. "
        "The last run was begun 3 Feb 2026 04:05 UTC by: pytest -q",
    ]


def test_a_mark_without_a_reason_or_a_damaged_one_is_of_a_killed_run(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / BEGUN).write_text("{not json")
    assert said_of_last_run(tmp_path) == [
        "The last run left no results: it was killed, or is still under way.",
        "What follows is of the run before it, of 1 Jan 2026 00:00 UTC.",
    ]


def test_no_badge_and_no_status_is_green(tmp_path: Path) -> None:
    summarise(write_study(tmp_path), gate("e3: recall@5 >= 0.5"))
    write_begun(tmp_path, MARK)
    (run,) = read(tmp_path)
    assert json.loads(badge_of(run))["color"] == "lightgrey"
    assert status_by_gates(run, has_succeeded=True)[0] == "error"


def test_the_results_of_a_run_take_the_mark_away(tmp_path: Path) -> None:
    write_begun(tmp_path, MARK)
    write_study(tmp_path)
    assert read_begun(tmp_path) is None


def test_a_folder_without_a_run_has_nothing_that_is_stale(tmp_path: Path) -> None:
    write_begun(tmp_path, MARK)
    assert said_of_last_run(tmp_path) == []
