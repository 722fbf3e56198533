"""The counts of the line of progress."""

from __future__ import annotations

import pytest

from rag_harness.frontends.pytest_plugin.progress import TrialTally
from tests.unit.rows import failed_row, make_row


def test_nothing_is_said_of_what_there_is_none_of() -> None:
    assert TrialTally(200).parts(now=0) == ["0/200"]


def test_rows_are_counted() -> None:
    tally = TrialTally(200)
    for row in (make_row(), make_row(retries=2), failed_row(retries=1)):
        tally.add(row, resumed=False, now=0)
    assert tally.parts(now=0, in_flight=16) == ["3/200", "1 error", "16 in flight", "3 retries", "330 tokens"]


def test_what_it_cost_is_said_where_it_is_known() -> None:
    tally = TrialTally(4)
    for cost in (None, 0.001, 0.0204):
        tally.add(make_row(cost_usd=cost), resumed=False, now=0)
    tally.add(make_row(cost_usd=7), resumed=True, now=0)
    assert tally.parts(now=0) == ["4/4", "$0.0214", "330 tokens"]


def test_what_is_resumed_or_replayed_was_paid_before() -> None:
    tally = TrialTally(3)
    tally.add(make_row(retries=3), resumed=True, now=0)
    tally.add(make_row(timings_recorded=True), resumed=False, now=0)
    assert tally.parts(now=0) == ["2/3"]
    tally.add(failed_row(retries=1), resumed=True, now=0)
    assert tally.parts(now=0) == ["3/3", "1 error"]


@pytest.mark.parametrize(("total", "left"), [(41, "0:20"), (21, "0:10"), (1221, "20:00"), (40_001, "11:06:20")])
def test_the_time_left_is_that_of_the_last_seconds(total: int, left: str) -> None:
    tally = TrialTally(total)
    for second in range(11):
        tally.add(make_row(), resumed=False, now=second)
        tally.add(make_row(), resumed=True, now=second)  # comes for nothing
    tally.done = 21 if total > 21 else 11
    assert tally.parts(now=10)[1] == f"{left} left"


def test_the_time_left_is_not_said_before_it_is_known() -> None:
    tally = TrialTally(10)
    tally.add(make_row(), resumed=False, now=0)
    assert tally.seconds_left(now=100) is None
    tally.add(make_row(), resumed=False, now=1)
    assert tally.seconds_left(now=2) is None
    assert tally.seconds_left(now=4) == 8 * 4


def test_what_was_slow_at_first_is_forgotten() -> None:
    tally = TrialTally(200)
    for second in [0, *range(100, 130)]:
        tally.add(make_row(), resumed=False, now=second)
    assert tally.seconds_left(now=129) == pytest.approx((200 - 31) * 1.0)
    assert tally.seconds_left(now=1000) is not None


def test_no_time_is_left_at_the_end() -> None:
    tally = TrialTally(2)
    for second in (0, 10):
        tally.add(make_row(), resumed=False, now=second)
    assert tally.parts(now=10) == ["2/2", "220 tokens"]


@pytest.mark.parametrize(("tokens", "shown"), [(9_999, "9999"), (145_359, "145k"), (2_345_678, "2.35M")])
def test_many_tokens_are_rounded(tokens: int, shown: str) -> None:
    tally = TrialTally(1)
    tally.add(make_row(usage={"prompt_tokens": tokens}), resumed=False, now=0)
    assert tally.parts(now=0)[-1] == f"{shown} tokens"


def test_the_pace_is_said_in_words() -> None:
    tally = TrialTally(150)
    assert tally.pace(now=0) == []
    for n in range(45):
        tally.add(make_row(), resumed=False, now=5.0 * n)
    assert tally.pace(now=5.0 * 44) == ["12 a minute", "9 min left"]
    tally.total = 50
    assert tally.pace(now=5.0 * 44) == ["12 a minute", "25 s left"]
