"""What a run took, against rows small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.report.speed import speed_lines, stage_lines, stage_quantiles
from rag_harness.results.row import ExperimentResult
from tests.unit.rows import make_row

NO_TIMES = dict.fromkeys(("retrieval_time_ms", "rerank_time_ms", "llm_time_ms", "ttft_ms"))


def rows_of(n: int, **changes: Any) -> list[ExperimentResult]:
    """Return ``n`` rows of trials that took 1 s each, half of it for the call, and ended a second after one another."""
    plain = {"total_time_ms": 1000, "llm_time_ms": 500}
    ends = (f"2026-01-01T00:00:{10 + each}.000+00:00" for each in range(n))
    return [make_row(query_id=f"q{each}", finished_at=end, **(plain | changes)) for each, end in enumerate(ends)]


def test_quantiles_of_the_stages_that_have_times() -> None:
    rows = [make_row(query_id=f"q{n}", retrieval_time_ms=n, rerank_time_ms=None) for n in range(1, 101)]
    found = stage_quantiles(rows)
    assert found["retrieve"] == {"p50": 50, "p95": 95, "p99": 99}
    assert list(found) == ["total", "retrieve", "model call"]


def test_a_line_an_experiment_with_the_stages_that_exist() -> None:
    rows = [
        make_row(experiment="e1", retrieval_time_ms=None, rerank_time_ms=None, llm_time_ms=1234.5),
        make_row(experiment="e3", retrieval_time_ms=0.44, rerank_time_ms=9.96, llm_time_ms=20.6),
    ]
    assert stage_lines(rows) == [
        "p50/p95/p99 ms        total     retrieve    rerank      model call",
        "e1              8.0/8.0/8.0            -         -  1234/1234/1234",
        "e3              8.0/8.0/8.0  0.4/0.4/0.4  10/10/10        21/21/21",
    ]
    assert stage_lines([make_row(**NO_TIMES)]) == ["p50/p95/p99 ms        total", "e3              8.0/8.0/8.0"]
    assert stage_lines([make_row(**NO_TIMES, total_time_ms=0)]) == stage_lines([]) == []
    assert stage_lines([make_row(**NO_TIMES, total_time_ms=60_400)])[1].split() == ["e3", "60s/60s/60s"]


def test_how_close_a_run_came_to_its_limit() -> None:
    # The first started at 9 s, the last ended at 13 s; 4 calls of 500 ms, two at once, take a second.
    assert speed_lines(rows_of(4), set(), concurrency=2) == [
        "4 trials in 4.0 s, 1 a second; 2 in flight at 500 ms a call make 1.0 s at best: 25 % of it reached"
    ]


def test_the_limit_is_never_less_than_the_longest_call() -> None:
    (line,) = speed_lines(rows_of(4), set(), concurrency=16)
    assert line == "4 trials in 4.0 s, 1 a second; the longest call took 0.50 s: 12 % of the best possible"


def test_it_is_never_better_than_its_limit() -> None:
    (line,) = speed_lines(rows_of(1, llm_time_ms=1100), set(), concurrency=1)
    assert line.endswith("100 % of it reached")


@pytest.mark.parametrize("changes", [{"llm_time_ms": None}, {"llm_time_ms": 0.5}])
def test_without_calls_worth_the_name_there_is_no_limit(changes: dict[str, Any]) -> None:
    assert speed_lines(rows_of(40, **changes), set(), 2) == ["40 trials in 40.0 s, 1 a second"]
    assert speed_lines(rows_of(1, **changes), set(), 2) == ["1 trial in 1.0 s, 1 a second"]


def test_what_is_resumed_or_replayed_does_not_count() -> None:
    old = rows_of(3)
    replayed = rows_of(3, timings_recorded=True, retries=9, waited_ms=9)
    assert speed_lines(old, {row.trial_id for row in old}, 2) == []
    assert speed_lines(replayed, set(), 2) == []
    assert speed_lines([], set(), 2) == []
    (line,) = speed_lines(rows_of(3, llm_time_ms=None), {"e3-q0"}, 2)
    assert line.startswith("2 trials in 2.0 s")


def test_waits_are_said_and_belong_to_the_time() -> None:
    lines = speed_lines(rows_of(2, waited_ms=3000, retries=1, llm_time_ms=None), set(), 2)
    assert lines == ["2 trials in 5.0 s, 0.4 a second", "waited 6.0 s for rate limits and between tries, 2 retries"]
    assert speed_lines(rows_of(1, retries=1), set(), 2)[1].endswith("tries, 1 retry")


def test_what_this_run_paid_is_said() -> None:
    rows = [*rows_of(2, llm_time_ms=None, cost_usd=0.00251), make_row(query_id="old", cost_usd=5)]
    assert speed_lines(rows, {"e3-old"}, 2) == ["2 trials in 2.0 s, 1 a second; $0.0050 paid"]


def test_a_long_line_becomes_two() -> None:
    assert speed_lines(rows_of(45, llm_time_ms=900, cost_usd=123.4), set(), 16) == [
        "45 trials in 45.0 s, 1 a second; $5553.00 paid",
        "16 in flight at 900 ms a call make 2.5 s at best: 6 % of it reached",
    ]


def test_no_time_at_all_is_no_error() -> None:
    (line,) = speed_lines(rows_of(1, total_time_ms=0, llm_time_ms=None), set(), 2)
    assert line == "1 trial in 0.00 s, 1000 a second"


def test_no_line_is_wider_than_100_columns() -> None:
    rows = rows_of(40, llm_time_ms=123456.7, total_time_ms=223456.7, ttft_ms=100000, waited_ms=99999, retries=4)
    many = [row.model_copy(update={"query_id": f"{n}-{row.query_id}"}) for n in range(250) for row in rows]
    lines = [*speed_lines(many, set(), 128), *stage_lines(many)]
    assert max(map(len, lines)) <= 100, lines
