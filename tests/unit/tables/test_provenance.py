"""Where the figures of a run come from, in words; what is not asked now has an age, also where it is a part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from rag_harness.tables.answer_warnings import _said, stale_reason
from rag_harness.tables.blocks import Origins

NOW = 1_800_000_000.0
DAY = 86_400.0


def origins(
    ok: list[bool],
    recorded: list[float],
    replayed: list[bool],
    resumed: list[bool],
    computed: Sequence[bool] = (),
    abstained: Sequence[bool] = (),
) -> Origins:
    """Return the origins of rows that all ended now; ``recorded`` in days ago, NaN where nothing was."""
    found = Origins()
    when = NOW - np.array(recorded) * DAY
    more = (np.array(each or [False] * len(ok)) for each in (computed, abstained))
    found.take(np.full(len(ok), NOW), when, np.array(ok), np.array(replayed), np.array(resumed), *more)
    return found


def test_each_row_is_counted_once_as_what_it_is() -> None:
    nan = float("nan")
    found = origins(
        [True, True, True, False], [nan, 3, 3, nan], [False, True, True, False], [False, False, True, False]
    )
    assert (found.asked.n, found.replayed.n, found.resumed.n, found.failed) == (1, 1, 1, 1)
    assert _said("e3", found, NOW) == (
        "1 replayed, recorded 12 Jan 2027 08:00 UTC (3 days old); 1 reused from the run of 15 Jan 2027 08:00 UTC, "
        "which had replayed them, recorded 12 Jan 2027 08:00 UTC (3 days old); 1 asked now; 1 without an answer"
    )


def test_an_answer_of_which_a_part_was_replayed_has_the_age_of_that_part() -> None:
    found = origins([True, True], [400, float("nan")], [False, False], [False, False])
    assert "2 asked now, 1 of them with replayed parts, recorded 11 Dec 2025" in _said("e3", found, NOW)
    assert stale_reason(found, 7 * DAY, NOW) == "the oldest answer is 400 days old"
    assert found.has_recorded


@pytest.mark.parametrize(
    ("days", "said"),
    [
        (3, "1 asked now, with replayed parts of the same time"),
        (3 + 1 / 24, "1 asked now, with replayed parts of the same day, 07:00 UTC"),
        (5, "1 asked now, with replayed parts, recorded 10 Jan 2027 08:00 UTC (5 days old)"),
    ],
)
def test_a_time_is_not_repeated_behind_the_same_time(days: float, said: str) -> None:
    found = origins([True, True], [3, days], [True, False], [False, False])
    assert _said("e3", found, NOW) == f"1 replayed, recorded 12 Jan 2027 08:00 UTC (3 days old); {said}"


@pytest.mark.parametrize(("days", "stale"), [(6.9, False), (7.1, True), (-1, True)])
def test_an_answer_is_stale_that_is_too_old_or_of_the_future(days: float, stale: bool) -> None:
    assert bool(stale_reason(origins([True], [days], [True], [False]), 7 * DAY, NOW)) == stale


def test_what_needed_no_model_was_not_asked_of_one() -> None:
    found = origins([True, True], [float("nan"), 1], [False, True], [False, False], [True, False])
    assert found.asked.n == 0
    assert _said("r1", found, NOW).endswith("; 0 asked now; 1 computed now, without a model")


def test_what_was_declined_without_a_model_is_neither_asked_nor_new() -> None:
    nan, no = float("nan"), [False] * 4
    found = origins([True] * 4, [nan] * 4, no, [False, False, False, True], [True] * 4, [True, True, False, True])
    assert (found.asked.n, found.computed, found.declined, found.resumed.n) == (0, 3, 2, 1)
    assert _said("t1", found, NOW) == (
        "1 reused from the run of 15 Jan 2027 08:00 UTC; 2 declined without a model; 1 computed now, without a model"
    )
