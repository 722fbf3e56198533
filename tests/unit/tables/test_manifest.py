"""Tables of conversations that simulated users play.

Turns that never came count nowhere, goals once a conversation.
"""

from __future__ import annotations

import json
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.types import Case, Expectation, Query, Scenario
from rag_harness.evaluation.measures import default_measures, measure_named
from rag_harness.page.comment import comment_of
from rag_harness.page.run import badge_of, status_by_gates
from rag_harness.page.sections.comparison import diff, first_change
from rag_harness.records.manifest import (
    BEGUN,
    BegunRun,
    EndsAgain,
    of_run,
    read_begun,
    read_manifest,
    repeat_fingerprint,
    user_fingerprint,
    write_begun,
    write_manifest,
)
from rag_harness.records.row import ExperimentResult
from rag_harness.runs.gates import Verdict, judge, parse_gate
from rag_harness.tables.answer_warnings import said_of_last_run
from rag_harness.tables.conversations import Played, Spent, over_repeats, played_of
from rag_harness.tables.judged_columns import TAKEN_OUT
from rag_harness.tables.reader import read_repeat, read_run, read_tables, save, saved_suite
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.page.runs import amend, gate, prose_in, read, rows_of, summarise, write_study
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import write_run

# Tables of conversations that simulated users play: turns that never came count nowhere, goals once a conversation.

GOAL = Scenario("hi", reached=(Expectation("contains", "a"), Expectation("contains", "b")), max_turns=3)
NAMES = ("x", "y", "z", "w")
CASES = [
    Case(Query(f"{name}#{turn}", "?", {"conversation": name, "turn": turn}), scenario=GOAL)
    for name in NAMES
    for turn in (1, 2, 3)
]


def turn(query_id: str, answer: str, *kept: int, **changes: Any) -> ExperimentResult:
    """Return a turn whose earlier answers have kept these of ``reached``."""
    name, _, number = query_id.partition("#")
    user = {"name": "user", "ms": 0, "detail": {"by": "gpt", "kept": list(kept)}}
    inputs = {"conversation": name, "turn": int(number)}
    return make_row(experiment="e3-sim", query_id=query_id, llm_answer=answer, inputs=inputs, user=user, **changes)


# x reaches its goal in two answers, y at its last turn fails, z is taken out, w asks all of its turns.
ROWS = [
    turn("x#1", "a"),
    turn("x#2", "b", 0),
    turn("y#1", "a"),
    failed_row(experiment="e3-sim", query_id="y#2", inputs={"conversation": "y", "turn": 2}),
    turn("z#1", "a"),
    turn("z#2", "b", 0),
    turn("w#1", "-"),
    turn("w#2", "-"),
    turn("w#3", "a b"),
]
ENDED = {
    "x#3": "after turn 2: the goal is reached",
    "y#3": "after turn 2: the user gives up: two turns failed",
    "z#2": "after turn 1: the simulated user left its role: it says 7",
    "z#3": "after turn 1: the simulated user left its role: it says 7",
}
OUT = {"z": ENDED["z#2"]}


@pytest.fixture
def output(tmp_path: Path) -> Path:
    write_run(tmp_path, ROWS, CASES)
    change(tmp_path, ended=ENDED, taken_out=OUT, history="played", user="gpt")
    return tmp_path


def change(output: Path, **changes: Any) -> None:
    manifest = read_manifest(output)
    suites = {name: each.model_copy(update=changes) for name, each in manifest.suites.items()}
    write_manifest(output, manifest.model_copy(update={"suites": suites}))


def gated(gate: str, found: SuiteTable) -> Verdict:
    return judge(parse_gate(gate, 10), {"e3-sim": found})


def table(output: Path) -> SuiteTable:
    measures = [*default_measures(False, 10), measure_named("goal_reached")]
    return read_tables(output, lambda _: measures)["e3-sim"]


def test_turns_that_never_came_are_neither_lost_nor_selected_nor_left_out(output: Path) -> None:
    found = table(output)
    assert found.total_of({}) == found.selected_of({}) == 8
    assert found.lost_of({}) == 0
    assert found.totals.rows == 8  # the row of a turn from before the user left its role does not count
    assert set(found.values("error_rate", {})) == {"x#1", "x#2", "y#1", "y#2", "z#1", "w#1", "w#2", "w#3"}
    assert found.total_of({"turn": "3"}) == 1
    verdict = gated("e3-sim: error_rate <= 0.2", found)
    assert (verdict.state, verdict.n) == ("passed", 8)
    assert read_manifest(output).suites["e3-sim"].is_complete
    assert {*saved_suite(found).cases} == {*found.values("error_rate", {})}


def test_a_row_from_before_its_user_left_its_role_is_of_no_run(output: Path) -> None:
    is_of_run = of_run(read_manifest(output).suites["e3-sim"])
    assert [row.query_id for row in ROWS if not is_of_run(row)] == ["z#2"]


def test_a_promise_over_repeats_counts_turns_that_each_repeat_came_to(output: Path) -> None:
    first = table(output)
    later = copy(first)
    later.ended = np.array([case_id in (*ENDED, "x#2") for case_id in first.ids])
    values = first.columns["error_rate"].values.copy()
    values[first.ids.index("x#2")] = np.nan
    later.columns = {**first.columns, "error_rate": replace(first.columns["error_rate"], values=values)}
    first.later = lambda: [later]
    gate = parse_gate("e3-sim: worst_of_2(error_rate) <= 0.2", 10)
    counted = over_repeats(gate, {"e3-sim": first})["e3-sim"]
    assert {*counted.values("error_rate", {})} == {"x#1", "y#1", "y#2", "z#1", "w#1", "w#2", "w#3"}
    assert counted.absent("error_rate", {}) == {"conversations that ended before it": 1}
    assert counted.unmeasured("error_rate", {}) == 0
    assert counted.total_of({}) == 8


def test_without_their_ends_the_same_turns_are_lost(output: Path) -> None:
    change(output, ended={}, taken_out={})
    found = table(output)
    assert found.lost_of({}) == 3
    assert gated("e3-sim: error_rate <= 0.5", found).state == "failed"


def test_a_conversation_has_one_goal_which_stands_at_its_first_turn(output: Path) -> None:
    found = table(output)
    assert found.values("goal_reached", {}) == {"x#1": 1.0, "y#1": 0.0, "w#1": 1.0}
    absent = found.absent("goal_reached", {})
    assert absent[TAKEN_OUT] == 1
    assert absent["its conversation's value at the first turn"] == 4
    assert not found.unmeasured("goal_reached", {})
    verdict = gated("e3-sim: goal_reached >= 0.6", found)
    assert (verdict.state, verdict.n) == ("passed", 3)
    assert verdict.value == pytest.approx(2 / 3)


def test_a_repeat_has_ends_of_its_own(output: Path) -> None:
    again = [
        each.model_copy(update={"experiment": "e3-sim+repeat2", "fingerprint": repeat_fingerprint("aaaa", 2)})
        for each in [*ROWS[:2], turn("x#3", "-", 0, 1), turn("y#1", "-")]
    ]
    (output / "derived").mkdir()
    (output / "derived" / "e3-sim+repeat2.jsonl").write_text("".join(each.line() for each in again))
    ended = {f"{name}#{n}": "after turn 1: all is asked" for name in "yzw" for n in (2, 3)}
    change(output, again={2: EndsAgain(ended=ended, taken_out={"w": "after turn 1"})}, answers=2)
    record = read_manifest(output).suites["e3-sim"]
    assert record.again[2].taken_out == {"w": "after turn 1"}
    found = read_repeat(output, "e3-sim", 2, record, [measure_named("error_rate"), measure_named("goal_reached")])
    assert set(found.values("error_rate", {})) == {"x#1", "x#2", "x#3", "y#1", "z#1", "w#1"}
    assert found.lost_of({}) == 2  # z and w have no row, and no end before their first turn
    assert found.values("goal_reached", {})["x#1"] == 1.0


def test_what_became_of_them_is_said(output: Path) -> None:
    said = make_row(
        experiment="e3-sim+user", usage={"prompt_tokens": 10, "completion_tokens": 5, "calls": 2}, cost_usd=0.5,
        fingerprint=user_fingerprint("aaaa"),
    )  # fmt: skip
    other = said.model_copy(update={"fingerprint": "of another run"})
    (output / "derived").mkdir()
    (output / "derived" / "e3-sim+user.jsonl").write_text(said.line() + other.line())
    played = played_of(output, read_manifest(output), {"e3-sim": table(output)})["e3-sim"]
    assert played.turns == {"x": 2, "y": 2, "z": 1, "w": 3}
    assert played.reached == (2, 3)
    assert played.endings == {
        "the goal is reached": 1,
        "the user gives up": 1,
        "the simulated user left its role": 1,
        "the most turns were asked": 1,
    }
    assert played.spent == Spent(2, 15, 0.5)
    first, second, third = played.lines("e3-sim")
    assert first.startswith(
        "e3-sim: 4 conversations with a simulated user (gpt): 2 of 3 reached the goal; 2.0 turns, 3 at most; 1 × "
    )
    assert second == f"taken out of e3-sim: 1 of 4 conversations: z {OUT['z']}"
    assert (
        third == "the simulated user of e3-sim took 2 calls and 15 tokens, 0.5000 USD, counted in no figure of e3-sim"
    )
    assert played.as_json()["goal_reached"] == 2


def test_a_conversation_that_did_not_end_is_called_so(output: Path) -> None:
    change(output, ended={name: why for name, why in ENDED.items() if name[0] != "x"}, not_run=["x#3"])
    played = played_of(output, read_manifest(output), {"e3-sim": table(output)})["e3-sim"]
    assert played.endings["not finished"] == 1


def test_a_script_has_spent_nothing(output: Path) -> None:
    change(output, user="a script")
    played = played_of(output, read_manifest(output), {"e3-sim": table(output)})["e3-sim"]
    assert played.spent is None
    assert len([*Played("a script", {"x": 1}).lines("c1-sim")]) == 1


def test_other_users_are_no_rivals_and_few_files_say_of_them(output: Path) -> None:
    record = read_manifest(output).suites["e3-sim"]
    assert record.asked != record.model_copy(update={"file": "e2-sim.jsonl"}).asked
    plain = record.model_copy(update={"ended": {}, "taken_out": {}, "history": "", "user": ""})
    assert not {"ended", "taken_out", "again", "history", "user"} & plain.model_dump().keys()


# What is said of a folder whose last run left no results.

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
