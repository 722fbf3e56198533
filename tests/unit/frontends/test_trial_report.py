"""A report carries what a test has brought, from a worker to the process that writes, and little of it stays there."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from _pytest.reports import pytest_report_from_serializable, pytest_report_to_serializable
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.frontends.pytest_plugin.trial_report import TrialReport, carried_by, put_on, skipped_why, take_off
from tests.unit.rows import make_row

execnet = pytest.importorskip("execnet")

ROW = make_row()
PRINTED = {"is_miss", "failure", "gate"}
_TEXT = st.text(max_size=5)
_TURN = st.tuples(_TEXT, _TEXT, _TEXT, st.booleans())
_COUNTS = st.dictionaries(_TEXT, st.integers(0, 9), min_size=1, max_size=2)
PARTS: dict[str, Any] = {
    "row": st.sampled_from([None, ROW.text]),
    "resumed": st.booleans(),
    "run_again": st.sampled_from([None, "new", "same"]),
    "judged": st.sampled_from([None, {"authors": (("judge", "model", "1"),), "lines": ["{}"], "counts": {"calls": 3}}]),
    "again": st.lists(_TEXT, max_size=2).map(tuple),
    "owed": st.sampled_from([None, ("e1", {"expected": [{"max_words": 80}]})]),
    "not_run": st.none() | st.tuples(_TEXT, _TEXT, _TEXT),
    "ended": st.none() | _TURN,
    "ended_again": st.lists(_TURN, max_size=2).map(tuple),
    "refused": st.none() | st.tuples(_TEXT, _TEXT),
    "unrecorded": st.none() | st.tuples(_TEXT, _COUNTS),
    "broken_exports": st.none() | _COUNTS,
    "missed": st.booleans(),
    "is_miss": st.booleans(),
    "failure": st.none() | st.tuples(_TEXT, _TEXT),
    "gate": st.none() | _TEXT,
}


def _report(**more: Any) -> pytest.TestReport:
    given_: dict[str, Any] = {"outcome": "passed", "longrepr": None, "when": "teardown", **more}
    return pytest.TestReport(nodeid="t.py::t", location=("t.py", 0, "t"), keywords={}, **given_)


def _sent(report: pytest.TestReport) -> Any:
    """Return the report that arrives where xdist sends this one."""
    plain = execnet.loads(execnet.dumps(pytest_report_to_serializable(report)))
    return pytest_report_from_serializable(plain)


@given(st.builds(TrialReport, **PARTS))
def test_what_a_worker_puts_on_a_report_the_writer_takes_off(carried: TrialReport) -> None:
    report = _report()
    put_on(report, carried)
    arrived = _sent(report)
    assert carried_by(arrived) == carried
    assert take_off(arrived) == carried
    left = TrialReport(**{name: getattr(carried, name) for name in PRINTED})
    assert carried_by(arrived) == take_off(arrived) == left


def test_a_report_that_carries_nothing_is_as_pytest_made_it() -> None:
    report, other = _report(), _report()
    put_on(report, TrialReport())
    take_off(report)
    assert {**vars(report), "start": 0, "stop": 0} == {**vars(other), "start": 0, "stop": 0}


def test_a_row_has_one_line_in_the_files_wherever_it_was_made() -> None:
    here, from_worker = TrialReport(row=ROW), TrialReport(row=ROW.text)
    assert here.line == from_worker.line == ROW.line()
    assert here.result == from_worker.result == ROW


@pytest.mark.parametrize("ours", ["not_run", "ended", "refused", "gate"])
def test_a_test_that_we_skipped_was_skipped_by_nobody_else(ours: str) -> None:
    report = _report(outcome="skipped", longrepr=("t.py", 1, "Skipped: no time"))
    values: dict[str, Any] = {"not_run": ("e1", "q", "why"), "ended": ("e1", "q", "why", False)}
    values |= {"refused": ("e1", "why"), "gate": "undecided"}
    assert skipped_why(report, TrialReport()) == "no time"
    assert skipped_why(report, replace(TrialReport(), **{ours: values[ours]})) == ""


def test_each_part_is_sent() -> None:
    assert {each.name for each in fields(TrialReport)} == PARTS.keys(), "a part that is not drawn goes untested"
