"""The gates in brief: counts, what failed and by which trial, what nearly failed, what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.records.scores import CauseLine
from rag_harness.tables.brief_lines import LineWriter, failed_gate_lines, gate_count_lines
from rag_harness.tables.gate_states import gates_state
from tests.unit.tables.standing_tables import kinds, table

LABELS = kinds(a=2, b=2)
TABLES = {
    "e1": table(LABELS, token_f1=[0.9, 0.1, 0.1, 0.8], error_rate=[0, 0, 1, 0]),
    "e2": table(LABELS, token_f1=[0.2, 0.3, 0.1, 0.9]),
}


def gate(text: str, state: str, **fields: Any) -> dict[str, Any]:
    return {"gate": text, "state": state, "value": 0.5, "threshold": 0.4, "interval": [0.4, 0.6], "n": 4, **fields}


@pytest.mark.parametrize(
    ("text", "worst"),
    [
        ("e1: token_f1 >= 0.8", "e1-q001"),
        ("e1[kind=b]: token_f1 >= 0.8", "e1-q002"),
        ("e1: error_rate <= 0.1", "e1-q002"),
        ("e1: token_f1 >= e2", "e1-q001"),
        ("e2: token_f1 >= e1", "e2-q000"),
        ("e1: faithfulness >= 0.8", ""),
        ("e9: token_f1 >= 0.8", ""),
    ],
)
def test_a_failed_gate_names_the_trial_that_counts_most(text: str, worst: str) -> None:
    (failed,) = gates_state([gate(text, "failed")], TABLES, [], 10).failed
    assert failed.worst == worst


def test_of_trials_that_are_as_bad_the_first_with_a_cause_is_named() -> None:
    causes = [CauseLine(experiment=name, query_id="q002", cause="Logic Failure") for name in ("e2", "e1")]
    (failed,) = gates_state([gate("e1: token_f1 >= 0.8", "failed")], TABLES, causes, 10).failed
    assert failed.worst == "e1-q002"


@pytest.mark.parametrize(
    ("value", "threshold", "shown"),
    [(0.5, 0.4, "1 case lost to a crash, so it cannot pass"), (0.3, 0.4, "worst: e1-q001")],
)
def test_what_failed_a_gate_is_shown_below_it(value: float, threshold: float, shown: str) -> None:
    """Its reason where the value alone would have passed, else its worst trial, whatever else is remarked on."""
    reason = "1 case lost to a crash, so it cannot pass"
    said = gate(f"e1: token_f1 >= {threshold}", "failed", value=value, threshold=threshold, reason=reason)
    lines = [line.text.strip() for line in failed_gate_lines(gates_state([said], TABLES, [], 10), LineWriter(80))]
    assert lines[1:] == [shown]


def test_the_closest_is_nearest_in_widths_of_its_interval() -> None:
    far = gate("e1: token_f1 >= 0.4", "passed", value=0.5, interval=[0.49, 0.51])
    near = gate("e2: token_f1 >= 0.2", "passed", value=0.5, threshold=0.2, interval=[0.1, 0.9])
    failed = gate("e2: token_f1 >= 0.5", "failed", value=0.5, threshold=0.5)
    found = gates_state([far, near, failed], TABLES, [], 10)
    assert found.closest is not None
    assert (found.closest.condition, found.closest.figures) == ("e2: token_f1 >= 0.2", "0.500 [0.10, 0.90]")
    assert found.verdict == "FAIL"
    assert found.counts == {"passed": 2, "failed": 1}


@pytest.mark.parametrize("interval", [None, [0.5, 0.5], [None, 0.6]])
def test_a_gate_without_a_whole_interval_is_not_the_closest(interval: Any) -> None:
    found = gates_state([gate("e1: token_f1 >= 0.4", "passed", interval=interval)], TABLES, [], 10)
    assert found.closest is None
    assert found.verdict == "PASS"


def test_gates_that_were_not_judged_name_what_they_need() -> None:
    nothing = {"value": None, "threshold": None, "interval": None}
    gates = [
        gate("e1: token_f1 >= e3", "not judged", **nothing),
        gate("e4: token_f1 >= baseline", "not judged", **nothing),
        gate("of another version", "not judged", **nothing),
    ]
    found = gates_state(gates, TABLES, [], 10)
    assert found.needed == ["e3", "e4"]
    assert (found.verdict, found.total) == ("", 3)


NOTHING = {"value": None, "threshold": None, "interval": None}


@pytest.mark.parametrize(
    ("gates", "line"),
    [
        (["e9: mrr@10 >= 0.4"], "none judged: the only one is on e9, which did not run"),
        (["e9: mrr@10 >= e8", "e7: mrr@10 >= 0.4"], "none judged: all 2 are on e7, e8 and e9, which did not run"),
        (["e9: mrr@10 >= e1"], "0 passed, 0 failed, 1 not judged (e9 did not run)"),
        (["e9: mrr@10 >= 0.4", "e1: mrr@10 >= 0.4"], "0 passed, 0 failed, 2 not judged (e9 did not run)"),
    ],
)
def test_gates_of_which_none_is_on_what_ran_are_not_counted_by_verdict(gates: list[str], line: str) -> None:
    said = [gate(text, "not judged", **NOTHING) for text in gates]
    assert counts(said) == [f"gates    {line}"]
    strict = gates_state(said, TABLES, [], 10, {"not judged": len(said)})
    (shown, *_) = gate_count_lines(strict, LineWriter(120), "")
    assert shown.text.startswith("gates    FAIL   0 passed, 0 failed")


def test_gates_that_failed_as_expected_are_named_and_many_are_cut() -> None:
    known = [gate(f"e{n}: token_f1 >= 0.9", "xfailed") for n in range(5)]
    assert counts(known[:1])[-1] == "         failed as expected: e0: token_f1 >= 0.9"
    assert counts(known[:2])[-1] == "         failed as expected: e0: token_f1 >= 0.9; e1: token_f1 >= 0.9"
    assert counts(known)[-1] == "         failed as expected: e0: token_f1 >= 0.9; e1: token_f1 >= 0.9; and 3 more"


def counts(gates: list[dict[str, Any]]) -> list[str]:
    return [line.text for line in gate_count_lines(gates_state(gates, TABLES, [], 10), LineWriter(120), "")]


def test_what_this_run_would_be_compared_with_is_named_first() -> None:
    nothing = {"value": None, "threshold": None, "interval": None}
    gates = [
        gate(said, "not judged", **nothing) for said in ("a1: token_f1 >= 0.4", "e1: token_f1 >= e4", "b1: mrr > a1")
    ]
    assert gates_state(gates, TABLES, [], 10).needed == ["e4", "a1", "b1"]


def test_undecided_gates_are_neither_passed_nor_failed() -> None:
    found = gates_state([gate("e1: token_f1 >= 0.4 @95%", "undecided")], TABLES, [], 10)
    assert (found.verdict, len(found.undecided), len(found.failed)) == ("UNDECIDED", 1, 0)
