"""The summary's numbers, against rows small enough to count by hand."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.records.row import ExperimentResult
from rag_harness.stats import quantile
from rag_harness.tables.summary import ExperimentSummary, answers_by, summary_lines, table
from rag_harness.tables.summary import summarise as summarise_tables
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.suite_tables import case, tables_of


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
