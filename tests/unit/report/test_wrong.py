"""Wrong answers and wrong declines are two figures, held against a count by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from rag_harness.tables.answer_warnings import (
    all_with_wrong,
    count_wrong,
    describe_wrong,
    describe_wrong_alone,
    verdicts_of,
    with_wrong,
    wrongly_declined,
)
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.report.standing_tables import Values, kinds, table

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
