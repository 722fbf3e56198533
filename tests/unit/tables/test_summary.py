"""The summary's numbers, speeds and counts, against rows small enough to count by hand."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.frontends.pytest_plugin.progress import TrialTally
from rag_harness.records.row import ExperimentResult
from rag_harness.stats import quantile
from rag_harness.tables import summary
from rag_harness.tables.summary import ExperimentSummary, answers_by, summary_lines, table
from rag_harness.tables.summary import summarise as summarise_tables
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.suite_tables import case, table_of, tables_of

# The summary's numbers, against rows small enough to count by hand.


def summarise(rows: list[ExperimentResult], **more: Any) -> list[ExperimentSummary]:
    return summarise_tables(tables_of(rows, **more))


def found(query_id: str, *pages: str, gold: str = "gold.md", **changes: Any) -> ExperimentResult:
    """Return a row whose ranking is ``pages``."""
    chunks = [make_chunk(f"{page}.md#chunk_{n}") for n, page in enumerate(pages)]
    more: dict[str, Any] = {"context_reference": [gold] if gold else [], "candidates": []}
    return make_row(query_id=query_id, retrieved_chunks=chunks, **(more | changes))


def test_aggregates_of_one_experiment() -> None:
    rows = [
        found("q1", "gold", "b"),
        found("q2", "a", "gold", abstained=True),
        found("q3", "a", "b"),
        found("q4", "a", gold=""),
        failed_row(query_id="q5", context_reference=["gold.md"]),
    ]
    (summary,) = summarise(rows, resumed={"e3": ["q1"], "e2": ["q2"]})
    assert (summary.experiment, summary.trials, summary.errors, summary.resumed) == ("e3", 5, 1, 1)
    assert summary.recall_at_5 == pytest.approx(2 / 4)
    assert summary.mrr_at_10 == pytest.approx((1 + 1 / 2 + 0 + 0) / 4)
    assert (summary.abstained, summary.tokens) == (1, 5 * 110)
    assert summary.cells() == ("e3", "5", "1", "1", "0.500", "0.375", "1", "550", "0", "-")


def test_an_error_counts_0_though_it_retrieved() -> None:
    error = {"stage": "generate", "type": "ModelCallError", "message": "503"}
    rows = [found("q1", "gold"), found("q2", "gold", status="error", error=error, llm_answer="")]
    assert summarise(rows)[0].recall_at_5 == 0.5


def test_only_errors_count_0_where_there_is_retrieval() -> None:
    assert summarise([failed_row(context_reference=["gold.md"])])[0].recall_at_5 == 0


def test_a_page_has_the_place_of_its_first_chunk() -> None:
    (summary,) = summarise([found("q1", "a", "a", "a", "a", "a", "gold", "gold")])
    assert (summary.recall_at_5, summary.mrr_at_10) == (0, 1 / 6)


@pytest.mark.parametrize(
    "row",
    [
        found("q1", retrieval_time_ms=None, rerank_time_ms=None),  # no retrieval, as in e1
        found("q1", "a", gold=""),
    ],
)
def test_without_retrieval_or_gold_there_is_no_recall(row: ExperimentResult) -> None:
    (summary,) = summarise([row])
    assert (summary.recall_at_5, summary.mrr_at_10) == (None, None)
    assert summary.cells()[4:6] == ("-", "-")


def test_the_cost_has_a_column_where_a_price_is_known() -> None:
    for cost in (None, 0):
        free = summarise([found("q1", cost_usd=cost)])
        assert free[0].cost_usd == cost
        assert summary_lines(free)[0].split()[-1] == "tokens"
    rows = [found("q1", cost_usd=0.004), found("q2", cost_usd=1.5), found("q3", experiment="e4")]
    header, *lines = summary_lines(summarise(rows))
    assert [line.split()[-1] for line in (header, *lines)] == ["cost", "$1.50", "-"]


def test_experiments_are_told_apart_and_sorted() -> None:
    rows = [make_row(experiment=each, query_id=f"q{n}") for n, each in enumerate(["e3", "e1", "e3"])]
    assert [(each.experiment, each.trials) for each in summarise(rows)] == [("e1", 1), ("e3", 2)]
    assert summarise([]) == []


def test_what_a_crash_took_counts_0_as_gates_count_it() -> None:
    lost = case("q2", ["gold.md"])
    rows, cases = [found("q1", "gold")], [case("q1", ["gold.md"]), lost]
    (summary,) = summarise(rows, cases=cases, selected={"e3": ["q1", "q2"]})
    assert (summary.recall_at_5, summary.mrr_at_10, summary.trials, summary.lost) == (0.5, 0.5, 1, 1)
    header, line = (text.split() for text in summary_lines([summary]))
    assert (header[-1], line[-1]) == ("lost", "1")


def test_who_declined_without_a_model_is_nobody() -> None:
    said = [make_row(query_id="q1", model="gpt-5"), make_row(query_id="q2", model="", abstained=True)]
    assert answers_by(tables_of(said)) == "answers by gpt-5"
    assert answers_by(tables_of(said[1:])) == "answers by nobody: no trial has one"


def test_it_is_said_whose_answers_they_are() -> None:
    def said(**models: str) -> str:
        return answers_by(tables_of([make_row(experiment=name, model=model) for name, model in models.items()]))

    assert said(e3="gpt-x") == "answers by gpt-x"
    assert said(e3="embedded/extractive", e4="embedded/extractive") == (
        "answers by embedded/extractive (a baseline reader, not an LLM)"
    )
    assert said(mine="") == "answers by a pipeline of your own"
    assert (
        said(e1="gpt-x", e2="gpt-x", mine="") == "answers of e1, e2 by gpt-x; answers of mine by a pipeline of your own"
    )
    assert answers_by(tables_of([failed_row()])) == "answers by nobody: no trial has one"


@pytest.mark.parametrize(
    ("values", "share", "expected"),
    [([], 0.5, 0), ([7], 0.95, 7), ([1, 2], 0.5, 1), ([1, 2, 3, 4, 5, 6], 0.5, 3), ([1, 2, 3], 0.5, 2), ([1, 2], 0, 1)],
)
def test_quantile_by_hand(values: list[float], share: float, expected: float) -> None:
    assert quantile(values, share) == expected


@given(n=st.integers(1, 2000), percent=st.integers(1, 100))
def test_quantile_is_the_nearest_rank(n: int, percent: int) -> None:
    assert quantile(range(1, n + 1), percent / 100) == ceil(Fraction(percent, 100) * n)


def test_a_table_is_aligned() -> None:
    assert table([("name", "n"), ("e1", "100")]) == ["name    n", "e1    100"]


# What a run took, against rows small enough to count by hand.


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


# The counts of the line of progress.


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
