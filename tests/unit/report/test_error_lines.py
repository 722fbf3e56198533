"""Errors for people: equal ones share a line with their number."""

from __future__ import annotations

from typing import Any

from rag_harness.tables.answer_warnings import error_lines
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import failed_row, make_row
from tests.unit.tables import table_of


def of(*messages: str, experiment: str = "e3") -> SuiteTable:
    """Return a table of a trial with each message, and of one that answered."""
    usual: dict[str, Any] = {"experiment": experiment}
    rows = [
        failed_row(query_id=f"q{n}", error={"stage": "ask", "type": "StatusError", "message": each}, **usual)
        for n, each in enumerate(messages)
    ]
    return table_of([*rows, make_row(query_id="right", **usual)])


def test_one_error_names_its_trial() -> None:
    assert error_lines([of("503")]) == (["error e3-q0: ask: StatusError: 503"], 0)


def test_eight_equal_errors_are_one_line_over_all_experiments() -> None:
    found = error_lines([of(*["503"] * 5), of(*["503"] * 3, experiment="e4")])
    assert found == (["8 × the same error, first e3-q0: ask: StatusError: 503"], 0)


def test_errors_that_differ_by_an_id_or_a_time_are_one_line() -> None:
    said = "timed out after {}.2 s (request req_{:032x})"
    found = error_lines([of(*[said.format(n, n) for n in range(9)]), of(said.format(40, 40), experiment="e4")])
    assert found == ([f"10 × the same error, first e3-q0: ask: StatusError: {said.format(0, 0)}"], 0)


def test_others_stand_below_and_the_rest_is_counted() -> None:
    lines, more = error_lines([of("a", "b", "a", "c", "d", "e", "f", "f", "b")])
    assert lines == [
        "2 × the same error, first e3-q0: ask: StatusError: a",
        "2 × the same error, first e3-q1: ask: StatusError: b",
        "error e3-q3: ask: StatusError: c",
        "error e3-q4: ask: StatusError: d",
        "error: ask: StatusError: e",
    ]
    assert more == 2


def test_without_errors_there_is_no_line() -> None:
    assert error_lines([of()]) == ([], 0)
