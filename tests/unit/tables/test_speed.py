"""What a run took, against rows small enough to count by hand."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.records.row import ExperimentResult
from rag_harness.tables import summary
from tests.unit.rows import make_row
from tests.unit.suite_tables import table_of, tables_of


def stage_quantiles(rows: list[ExperimentResult]) -> dict[str, dict[str, float]]:
    return summary.stage_quantiles(table_of(rows))


def stage_lines(rows: list[ExperimentResult]) -> list[str]:
    return summary.stage_lines(tables_of(rows))


def speed_lines(rows: list[ExperimentResult], resumed: dict[str, list[str]], concurrency: int) -> list[str]:
    return summary.speed_lines(tables_of(rows, resumed=resumed), concurrency)


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


def rows_with(*times: tuple[str, float, float, float], **changes: Any) -> list[ExperimentResult]:
    """Return rows of trials whose retrieval, reranking and model call took so many milliseconds."""
    ends = (f"2026-01-01T00:00:{10 + each}.000+00:00" for each in range(len(times)))
    return [
        make_row(
            query_id=name,
            finished_at=end,
            retrieval_time_ms=retrieval,
            rerank_time_ms=rerank,
            llm_time_ms=llm,
            total_time_ms=retrieval + rerank + llm,
            **changes,
        )
        for end, (name, retrieval, rerank, llm) in zip(ends, times, strict=True)
    ]


def test_where_the_time_went() -> None:
    # The first began at 9 s, the last ended at 13 s; 4 calls of 500 ms, two at once, take a second.
    rows = rows_with(*((f"q{n}", 300, 200, 500) for n in range(4)))
    assert speed_lines(rows, {}, concurrency=2) == [
        "4 trials in 4.0 s, 1 a second",
        "retrieval 1.2 s, reranking 0.80 s, model calls (500 ms each, 2 in flight) 1.0 s, harness 1.0 s",
    ]


def test_what_local_models_took_is_not_the_harness() -> None:
    rows = rows_with(("q0", 2500, 1400, 100), ("q1", 1500, 400, 100))
    assert speed_lines(rows, {}, 16)[1] == (
        "retrieval 4.0 s, reranking 1.8 s, model calls (100 ms each, 16 in flight) 0.10 s, harness 0.00 s"
    )


def test_work_that_two_experiments_share_is_counted_once() -> None:
    rows = rows_with(("q0", 1000, 500, 100), ("q1", 1000, 500, 100))
    shared = [row.model_copy(update={"experiment": "e4"}) for row in rows]
    assert speed_lines([*rows, *shared], {}, 16)[1].startswith("retrieval 2.0 s, reranking 1.0 s, model calls")


def test_calls_take_never_less_than_the_longest() -> None:
    assert "model calls (500 ms each, 16 in flight) 0.50 s" in speed_lines(rows_of(4), {}, concurrency=16)[1]


def test_steps_of_a_pipeline_of_ones_own_are_not_the_harness() -> None:
    rows = rows_of(4, llm_time_ms=None, retrieval_time_ms=None, rerank_time_ms=None)
    assert speed_lines(rows, {}, 2) == ["4 trials in 4.0 s, 1 a second", "other steps 2.0 s, harness 2.0 s"]


@pytest.mark.parametrize("changes", [{"llm_time_ms": None}, {"llm_time_ms": 0.5}])
def test_without_times_worth_the_name_there_is_nothing_to_say(changes: dict[str, Any]) -> None:
    assert speed_lines(rows_of(20, total_time_ms=1, **changes), {}, 2) == ["20 trials in 19.0 s, 1.1 a second"]
    assert speed_lines(rows_of(1, total_time_ms=1, **changes), {}, 2) == ["1 trial in 0.00 s, 1000 a second"]


def test_what_is_resumed_or_replayed_does_not_count() -> None:
    old = rows_of(3)
    replayed = rows_of(3, timings_recorded=True, retries=9, waited_ms=9)
    assert speed_lines(old, {"e3": [row.query_id for row in old]}, 2) == []
    assert speed_lines(replayed, {}, 2) == []
    assert speed_lines([], {}, 2) == []
    line, _ = speed_lines(rows_of(3, llm_time_ms=None), {"e3": ["q0"]}, 2)
    assert line.startswith("2 trials in 2.0 s")


def test_waits_are_said_and_belong_to_the_time() -> None:
    first, _, waits = speed_lines(rows_of(2, waited_ms=3000, retries=1, llm_time_ms=None), {}, 2)
    assert first == "2 trials in 5.0 s, 0.4 a second"
    assert waits == "waited 6.0 s for rate limits and between tries, 2 retries"
    assert speed_lines(rows_of(1, retries=1), {}, 2)[-1].endswith("tries, 1 retry")


def test_what_this_run_paid_is_said() -> None:
    rows = [*rows_of(2, llm_time_ms=None, cost_usd=0.00251), make_row(query_id="old", cost_usd=5)]
    assert speed_lines(rows, {"e3": ["old"]}, 2)[0] == "2 trials in 2.0 s, 1 a second; $0.0050 paid"


def test_no_time_at_all_is_no_error() -> None:
    (line,) = speed_lines(rows_of(1, total_time_ms=0, llm_time_ms=None), {}, 2)
    assert line == "1 trial in 0.00 s, 1000 a second"


def test_no_line_is_wider_than_100_columns() -> None:
    long = {"llm_time_ms": 1234567.8, "total_time_ms": 2234567.8, "ttft_ms": 1000000, "waited_ms": 999990}
    rows = rows_of(40, **long, retries=40)
    many = [row.model_copy(update={"query_id": f"{n}-{row.query_id}"}) for n in range(25) for row in rows]
    tables = tables_of(many)
    lines = [*summary.speed_lines(tables, 128), *summary.stage_lines(tables)]
    assert max(map(len, lines)) <= 100, lines


def test_waiting_between_tries_is_not_the_harness() -> None:
    # Two trials of 1 s, half of it for the call, each waited 3 s: 5 s in all, for they ended a second apart.
    _, *where, _ = speed_lines(rows_of(2, waited_ms=3000, retries=1), {}, concurrency=2)
    said = (
        "model calls (500 ms each, 2 in flight) 0.50 s, other steps 0.50 s, waiting between tries 3.0 s, harness 1.00 s"
    )
    assert " ".join(where) == said
    assert "waiting" not in speed_lines(rows_of(2), {}, 2)[1]


def test_trials_that_wait_together_wait_as_long_as_the_longest() -> None:
    rows = [
        *rows_of(1, waited_ms=3000),
        *(row.model_copy(update={"query_id": "q"}) for row in rows_of(1, waited_ms=500)),
    ]
    assert "waiting between tries 3.0 s" in " ".join(speed_lines(rows, {}, concurrency=16))


def test_no_more_waiting_is_said_than_there_was_time() -> None:
    together = [row.model_copy(update={"finished_at": "2026-01-01T00:00:10.000+00:00"}) for row in rows_of(4)]
    waited = [row.model_copy(update={"waited_ms": 30_000}) for row in together]
    # All began at -21 s and ended at 10 s: 31 s, of which 4 calls and other steps, one after another, took 4 s.
    assert "waiting between tries 27.0 s, harness 0.00 s" in " ".join(speed_lines(waited, {}, concurrency=1))
