"""The summary's numbers, against rows small enough to count by hand."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.report.summary import quantile, ranking, summarise, summary_lines, table
from rag_harness.results.row import ExperimentResult
from tests.unit.rows import failed_row, make_chunk, make_row


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
    (summary,) = summarise(rows, resumed={"e3-q1", "e2-q2"})
    assert (summary.experiment, summary.trials, summary.errors, summary.resumed) == ("e3", 5, 1, 1)
    assert summary.recall_at_5 == pytest.approx(2 / 4)
    assert summary.mrr_at_10 == pytest.approx((1 + 1 / 2 + 0 + 0) / 4)
    assert (summary.abstained, summary.tokens) == (1, 5 * 110)
    assert summary.cells() == ("e3", "5", "1", "1", "0.500", "0.375", "1", "550", "-")


def test_an_error_counts_0_though_it_retrieved() -> None:
    error = {"stage": "generate", "type": "ModelCallError", "message": "503"}
    rows = [found("q1", "gold"), found("q2", "gold", status="error", error=error, llm_answer="")]
    assert summarise(rows, set())[0].recall_at_5 == 0.5


def test_only_errors_count_0_where_there_is_retrieval() -> None:
    assert summarise([failed_row(context_reference=["gold.md"])], set())[0].recall_at_5 == 0


def test_a_page_has_the_place_of_its_first_chunk() -> None:
    (summary,) = summarise([found("q1", "a", "a", "a", "a", "a", "gold", "gold")], set())
    assert (summary.recall_at_5, summary.mrr_at_10) == (0, 1 / 6)


@pytest.mark.parametrize(
    "row",
    [
        found("q1", retrieval_time_ms=None, rerank_time_ms=None),  # no retrieval, as in e1
        found("q1", "a", gold=""),
    ],
)
def test_without_retrieval_or_gold_there_is_no_recall(row: ExperimentResult) -> None:
    (summary,) = summarise([row], set())
    assert (summary.recall_at_5, summary.mrr_at_10) == (None, None)
    assert summary.cells()[4:6] == ("-", "-")


def test_the_cost_has_a_column_where_a_price_is_known() -> None:
    for cost in (None, 0):
        free = summarise([found("q1", cost_usd=cost)], set())
        assert free[0].cost_usd == cost
        assert summary_lines(free)[0].split()[-1] == "tokens"
    rows = [found("q1", cost_usd=0.004), found("q2", cost_usd=1.5), found("q3", experiment="e4")]
    header, *lines = summary_lines(summarise(rows, set()))
    assert [line.split()[-1] for line in (header, *lines)] == ["cost", "$1.50", "-"]


def test_experiments_are_told_apart_and_sorted() -> None:
    rows = [make_row(experiment=each, query_id=f"q{n}") for n, each in enumerate(["e3", "e1", "e3"])]
    assert [(each.experiment, each.trials) for each in summarise(rows, set())] == [("e1", 1), ("e3", 2)]
    assert summarise([], set()) == []


def test_the_ranking_is_the_prompts_order_then_the_rest_by_rerank_score() -> None:
    scores = {"p.md#chunk_0": 0.1, "low.md#chunk_0": 0.2, "none.md#chunk_0": None, "high.md#chunk_0": 0.9}
    candidates = [{"chunk_id": each, "score": 0.5, "rerank_score": score} for each, score in scores.items()]
    row = found("q1", "p", candidates=candidates)
    assert ranking(row) == ["p.md", "high.md", "low.md", "none.md"]


def test_the_ranking_without_a_reranker_keeps_the_first_stages_order() -> None:
    candidates = [{"chunk_id": f"{each}.md#chunk_3", "score": 0.1} for each in "bac"]
    assert ranking(found("q1", candidates=candidates)) == ["b.md", "a.md", "c.md"]


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
