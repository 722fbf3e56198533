"""Wrong answers and wrong declines are two figures, held against a count by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rag_harness.tables.answer_warnings import (
    all_with_wrong,
    count_wrong,
    describe_wrong,
    describe_wrong_alone,
    error_lines,
    verdicts_of,
    with_wrong,
    wrongly_declined,
)
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import table_of
from tests.unit.tables.standing_tables import Values, kinds, table

# Wrong answers and wrong declines are two figures, held against a count by hand.

RIGHT, WRONG, DECLINED, UNCHECKED = (1.0, 0.0), (0.0, 0.0), (0.0, 1.0), (None, 0.0)


def answers(*counted: tuple[int, tuple[float | None, float]]) -> SuiteTable:
    pairs = [pair for n, pair in counted for _ in range(n)]
    correct: Values = [pair[0] for pair in pairs]
    declined: Values = [pair[1] for pair in pairs]
    found = table(kinds(any=len(pairs)), correct=correct, false_abstention_rate=declined)
    found.totals.rows = len(pairs)
    return with_wrong(found)


@given(st.lists(st.sampled_from([RIGHT, WRONG, DECLINED, UNCHECKED]), min_size=1, max_size=40))
def test_each_checked_answer_is_right_or_wrong_or_wrongly_declined(pairs: list[tuple[float | None, float]]) -> None:
    found = verdicts_of(made := answers(*((1, pair) for pair in pairs)))
    checked = len(pairs) - pairs.count(UNCHECKED)
    if found is None:
        assert not checked
        return
    assert (found.checked, found.wrong, found.declined) == (checked, pairs.count(WRONG), pairs.count(DECLINED))
    assert found.unchecked == pairs.count(UNCHECKED)
    assert len(wrongly_declined(made)) == found.declined


def test_the_interval_is_that_of_a_share_of_checked_answers() -> None:
    found = verdicts_of(answers((12, RIGHT), (8, WRONG), (20, UNCHECKED)))
    assert found is not None
    assert found.interval == pytest.approx(tuple(binomtest(8, 20).proportion_ci(method="exact")), abs=1e-6)
    assert found.share_said == "40.0 % [19.1, 63.9]"
    assert describe_wrong_alone(found) == "40.0 % [19.1, 63.9] of 20; 0 wrongly declined, 12 correct, 20 not checked"


def test_both_are_said_apart_for_each_experiment() -> None:
    tables = {"e1": answers((12, RIGHT), (8, WRONG)), "e4": answers((9, RIGHT), (1, WRONG), (10, DECLINED))}
    said = "e1 40.0 % [19.1, 63.9] of 20, e4 5.0 % [0.1, 24.9] of 20. Wrongly declined: e1 0, e4 10."
    assert describe_wrong(tables) == said
    assert count_wrong(tables) == "9 wrong, 10 wrongly declined"
    assert count_wrong({"e1": answers((3, RIGHT))}) == "0 wrong"


def test_who_declines_everything_is_seen() -> None:
    assert describe_wrong({"e1": answers((20, DECLINED))}) == "e1 0.0 % [0.0, 16.8] of 20. Wrongly declined: e1 20."


def test_of_many_experiments_the_first_are_named() -> None:
    said = describe_wrong({f"e{n}": answers((3, RIGHT)) for n in range(9)})
    assert "e5 " in said
    assert "e6" not in said
    assert "and 3 more." in said


def test_where_nothing_is_checked_nothing_is_said() -> None:
    tables = all_with_wrong({"e1": table(kinds(any=3)), "e2": answers((3, UNCHECKED))})
    assert (describe_wrong(tables), count_wrong(tables)) == ("", "")
    assert verdicts_of(tables["e1"]) is None


# Errors for people: equal ones share a line with their number.


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
