"""What is said of a folder whose last run left no results."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.page.comment import comment_of
from rag_harness.page.run import badge_of, status_by_gates
from rag_harness.page.sections.comparison import diff, first_change
from rag_harness.records.manifest import BEGUN, BegunRun, read_begun, write_begun
from rag_harness.tables.baseline import read_run, save
from rag_harness.tables.provenance import said_of_last_run
from tests.unit.page.runs import amend, gate, prose_in, read, rows_of, summarise, write_study
from tests.unit.tables import write_run

MARK = BegunRun(date="2026-02-03T04:05:00+00:00", command="pytest -q", why="The service\nis  down")


def test_why_when_which_command_and_of_what_the_rest_is(tmp_path: Path) -> None:
    write_study(tmp_path)
    assert said_of_last_run(tmp_path) == []
    write_begun(tmp_path, MARK)
    assert said_of_last_run(tmp_path) == [
        "The last run left no results: The service is down.",
        "What follows is what is left of the run before it, of 1 Jan 2026 00:00 UTC, and of this one. "
        "The last run was begun 3 Feb 2026 04:05 UTC by: pytest -q",
    ]


def test_a_mark_without_a_reason_or_a_damaged_one_is_of_a_killed_run(tmp_path: Path) -> None:
    write_study(tmp_path)
    (tmp_path / BEGUN).write_text("{not json")
    assert said_of_last_run(tmp_path) == [
        "The last run left no results: it was killed, or is still under way.",
        "What follows is what is left of the run before it, of 1 Jan 2026 00:00 UTC, and of this one.",
    ]


def test_no_badge_and_no_status_is_green(tmp_path: Path) -> None:
    summarise(write_study(tmp_path), gate("e3: recall@5 >= 0.5"))
    write_begun(tmp_path, MARK)
    (run,) = read(tmp_path)
    assert json.loads(badge_of(run))["color"] == "lightgrey"
    assert status_by_gates(run, has_succeeded=True)[0] == "error"


def test_the_results_of_a_run_take_the_mark_away(tmp_path: Path) -> None:
    write_begun(tmp_path, MARK)
    write_run(tmp_path, rows_of("e3", 2, 2))
    assert read_begun(tmp_path) is None


def test_a_folder_without_a_run_has_nothing_that_is_stale(tmp_path: Path) -> None:
    write_begun(tmp_path, MARK)
    assert said_of_last_run(tmp_path) == []


@pytest.mark.parametrize("marked", ["before", "now"])
def test_a_folder_with_rows_of_two_runs_is_compared_with_nothing(
    marked: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs = {name: write_study(tmp_path / name) for name in ("before", "now")}
    amend(outputs["now"], date="2026-01-02T00:00:00+00:00")
    said = [str(outputs["before"]), str(outputs["now"])]
    assert main(["compare", *said]) == 0
    write_begun(outputs[marked], MARK)
    assert main(["compare", *said]) == CANNOT_RUN
    why = f"{outputs[marked]} cannot be compared: its last run, begun 3 Feb 2026 04:05 UTC, left no results: "
    why += "The service is down. Its rows are what is left of the run before it, and of this one. Run pytest with "
    why += f"--rag-output={outputs[marked]} again, or compare what --rag-save wrote of a run."
    assert why in capsys.readouterr().err
    runs = read(outputs["now"], outputs["before"])
    assert why in " ".join(prose_in(diff(runs)))
    assert first_change(runs) == []
    assert "Not compared. " in comment_of(runs)


def test_rows_of_two_runs_are_not_set_against_the_saved_run(tmp_path: Path) -> None:
    output = write_study(tmp_path / "output")
    save(tmp_path / "baselines" / "old.json", read_run(str(output)))
    amend(output, date="2026-01-02T00:00:00+00:00", settings={"compare": "old", "rootdir": str(tmp_path)})
    assert "Not compared. " not in comment_of(read(output))
    write_begun(output, MARK)
    assert "Not compared. " in comment_of(read(output))
