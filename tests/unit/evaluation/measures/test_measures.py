"""Answers that say what only a superseded page says, and prompts that say both."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import SettingsError
from rag_harness.core.registry import registered
from rag_harness.core.types import Case, Query
from rag_harness.evaluation import measures
from rag_harness.evaluation.measures import (
    ANSWERS,
    RankingMeasure,
    RowMeasure,
    Score,
    default_measures,
    known_measures,
    measure_named,
)
from rag_harness.evaluation.measures.judged import JudgedMeasure
from rag_harness.evaluation.measures.measure import CompositeMeasure
from rag_harness.evaluation.measures.metamorphic import MetamorphicMeasure
from rag_harness.records.row import ExperimentResult
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.rows import failed_row, make_chunk, make_row
from tests.unit.suite_tables import case_of, golden_row, table_of, tables_of

PLAN = Path(__file__).parents[4] / "data" / "kb" / "structure.json"
WINDOW = {
    "outdated_statement": "Most items can be returned within 30 days.",
    "current_statement": "Most items can be returned within 45 days.",
}
START = {
    "outdated_statement": "The return window starts on the day your order is dispatched from our warehouse.",
    "current_statement": "The return window starts on the day after your order is delivered to you.",
}


def scored(measure: str, answer: str = "", facts: Any = (WINDOW,), chunks: tuple[str, ...] = (), **row: Any) -> Score:
    metadata = {"superseded": list(facts) if isinstance(facts, tuple) else facts}
    texts = [make_chunk(f"page{n}.md#chunk_0", text=text) for n, text in enumerate(chunks)]
    made = make_row(llm_answer=answer, metadata=metadata, retrieved_chunks=texts, **row)
    return measure_named(measure).score(Case(Query("q1", "?")), made)  # type: ignore[attr-defined,no-any-return]


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        ("You have 30 days [Source 2].", 1),
        ("You have 30 days [Source 45].", 1),
        ("You have 45 days [Source 30].", 0),
        ("It was 30 days until 2024, now it is 45 days.", 0),
        ("I do not know.", 0),
        ("", 0),
        ("You have 130 days.", 0),
        ("Send it by 30 May.", 0),
        ("A 30-day window.", 1),
        ("The label costs 30 €.", 0),
        ("Nothing but 30.", 0),  # of what?
        ("You have thirty days.", 0),  # what it cannot see
    ],
)
def test_figures_that_only_the_old_version_has(answer: str, stale: float) -> None:
    assert scored("stale_answer", answer).value == stale


@pytest.mark.parametrize(("answer", "stale"), [("30 days, for €5", 1), ("30 days", 0), ("for €5", 0)])
def test_an_answer_is_stale_that_has_all_of_the_old_figures(answer: str, stale: float) -> None:
    fact = {"outdated_statement": "Within 30 days, for €5.", "current_statement": "Within 45 days, for €9."}
    assert scored("stale_answer", answer, (fact,)).value == stale


@pytest.mark.parametrize(
    ("answer", "stale"),
    [
        ("It starts when the order is dispatched from the warehouse.", 1),
        ("It starts the day after it was delivered to you.", 0),
        ("It starts when it is dispatched.", 0),
        ("It starts when it leaves the warehouse, dispatched.", 1),
        ("It starts when you say so.", 0),
    ],
)
def test_words_where_no_figure_differs(answer: str, stale: float) -> None:
    assert scored("stale_answer", answer, (START,)).value == stale


@pytest.mark.parametrize(
    ("old", "said"),
    [("1,000", "1000"), ("€3.50", "€3.5"), ("€3.50", "3.50 €"), ("1000", "1,000"), ("3,50", "3.50"), ("5 %", "5%")],
)
def test_a_figure_is_its_value(old: str, said: str) -> None:
    fact = {"outdated_statement": f"It costs {old}.", "current_statement": "It costs 777."}
    assert scored("stale_answer", f"That is {said}", (fact,)).value == 1


def test_one_stale_fact_is_enough_and_is_named() -> None:
    found = scored("stale_answer", "dispatched from the warehouse; 45 days", (WINDOW, START))
    assert (found.value, found.detail["stale"]) == (1, [START["outdated_statement"]])


def test_an_answer_that_declines_carries_nothing() -> None:
    assert scored("stale_answer", "I cannot say whether it is 30 days.", abstained=True).value == 0


def test_a_conflict_is_both_statements_in_the_prompt() -> None:
    old, new = WINDOW["outdated_statement"], WINDOW["current_statement"]
    assert scored("version_conflict", chunks=(f"# A\n\n{old}", f"x\n{new.replace('45', '**45**')}")).value == 1
    assert scored("version_conflict", chunks=(old.replace(" ", "\n"), "nothing")).value == 0
    assert scored("version_conflict", chunks=(new,)).value == 0
    assert scored("version_conflict").value == 0


@pytest.mark.parametrize("measure", ["stale_answer", "version_conflict"])
@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ((), "no superseded statement"),
        (None, "no superseded statement"),
        ("30 days", "metadata.superseded that is not a list"),
        (({"outdated_statement": "30 days"},), "metadata.superseded that is not a list"),
        (({"outdated_statement": "30 days", "current_statement": 45},), "metadata.superseded that is not a list"),
        (({"outdated_statement": " ", "current_statement": "45"},), "metadata.superseded that is not a list"),
        (({"outdated_statement": "30  days", "current_statement": "30 days"},), "two versions that say the same"),
    ],
)
def test_without_two_versions_there_is_nothing_to_measure(measure: str, facts: Any, reason: str) -> None:
    found = scored(measure, "30 days", facts)
    assert found.value is None
    assert found.undefined
    assert found.reason.startswith(reason)


def test_every_conflict_of_the_shipped_pages_is_told_apart() -> None:
    facts = [fact for pair in json.loads(PLAN.read_text())["version_pairs"] for fact in pair["conflicts"]]
    assert len(facts) == 27
    wrong = [
        fact["fact"]
        for fact in facts
        if scored("stale_answer", fact["outdated_statement"], (fact,)).value != 1
        or scored("stale_answer", fact["current_statement"], (fact,)).value != 0
    ]
    assert not wrong


def test_rates_per_version_pair_are_slices() -> None:
    rows = [
        make_row(query_id=f"q{n}", llm_answer=answer, metadata={"version_pair": pair, "superseded": [WINDOW]})
        for n, (pair, answer) in enumerate([("returns", "30 days"), ("returns", "45 days"), ("rates", "45 days")])
    ]
    table = tables_of(rows, measures=["stale_answer"])["e3"]
    assert table.by("version_pair", ["stale_answer"]) == {
        "rates": {"stale_answer": 0.0},
        "returns": {"stale_answer": 0.5},
    }


# Names of measures: what there is, what it is called with, and what is said of a slip.

CASE = Case(Query("q1", "?"))


@pytest.mark.parametrize("text", ["recall@5", "mrr@10", "ndcg@10", "all@3", "r_precision", "token_f1", "total_ms"])
def test_a_name_is_that_of_its_measure(text: str) -> None:
    assert measure_named(text).name == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ndgc@10", "Unknown measure 'ndgc'. Did you mean 'ndcg'"),
        ("recal@5", "Did you mean 'recall'"),
        ("token_f2", "Did you mean 'token_f1'"),
        ("", "Unknown measure"),
        ("recall", "needs a cutoff"),
        ("recall@", "needs a cutoff"),
        ("recall@0", "1 or more"),
        ("recall@-1", "1 or more"),
        ("recall@1.5", "1 or more"),
        ("recall@²", "1 or more"),
        ("r_precision@5", "takes none"),
        ("token_f1@5", "takes none. Write 'token_f1'"),
        ("faithfulness@5", "takes none. Write 'faithfulness'"),
        ("hri@5", "takes none. Write 'hri'"),
        ("metamorphic_case@5", "takes none. Write 'metamorphic_case'"),
    ],
)
def test_a_slip_is_explained(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        measure_named(text)
    assert message in str(refused.value)


def test_built_ins_come_in_by_the_common_door() -> None:
    assert set(known_measures()) == set(registered("measures"))
    for name in known_measures():
        made = registered("measures")[name].load()
        assert issubclass(made, (RowMeasure, JudgedMeasure, CompositeMeasure, MetamorphicMeasure))
        cut = issubclass(made, RowMeasure) and made.takes_cutoff
        measure = made(3 if cut else None)
        assert measure.name == (f"{name}@3" if cut else name)
        assert measure.version >= 1
        assert (measure.better, measure.worst) in {
            ("higher", 0.0), ("lower", 1.0), ("lower", None), ("higher", None)
        }  # fmt: skip
        # What can be as large as it likes has no worst value.
        if issubclass(made, RowMeasure):
            assert (measure.worst is None) == (measure.unit != "share")
        elif issubclass(made, MetamorphicMeasure):
            assert measure.worst is None  # a share of sampled answers, and an error is none
        else:
            assert measure.worst is not None


def test_what_is_kept_of_every_run() -> None:
    golden, experiment = ([measure.name for measure in default_measures(kind, 7)] for kind in (True, False))
    assert {"recall@7", "mrr@7", "ndcg@7"} <= set(golden)
    assert not {"token_f1", "total_ms"} & set(golden)
    assert set(ANSWERS) <= set(experiment)
    assert not {"recall@7", "total_ms"} & set(experiment)


def test_a_measure_of_ones_own_that_takes_a_cutoff_is_kept_at_5_and_10(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measures, "_own", lambda: ["precision"])
    assert [measure.name for measure in default_measures(True, 7)][-2:] == ["precision@5", "precision@10"]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_is_never_nan(value: float) -> None:
    with pytest.raises(ValueError, match="a score is a number or None"):
        Score(value)


def test_what_a_trial_took_is_read_off_its_row() -> None:
    usage = {"prompt_tokens": 107, "completion_tokens": 10, "calls": 1}
    row = make_row(cost_usd=0.002, ttft_ms=3.0, usage=usage)
    expected = {
        "total_ms": (8.0, "ms"),
        "retrieval_ms": (2.0, "ms"),
        "rerank_ms": (1.0, "ms"),
        "llm_ms": (5.0, "ms"),
        "ttft_ms": (3.0, "ms"),
        "cost_usd": (0.002, "usd"),
        "prompt_tokens": (107, "tokens"),
        "completion_tokens": (10, "tokens"),
        "tokens": (117, "tokens"),
    }
    for name, (value, unit) in expected.items():
        measure = measure_named(name)
        assert isinstance(measure, RowMeasure)
        assert (measure.score(CASE, row), measure.unit, measure.better) == (Score(value), unit, "lower")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("cost_usd", "no known price"),
        ("tokens", "no counted tokens"),
        ("ttft_ms", "no streamed answer"),
        ("rerank_ms", "no time of a reranker"),
    ],
)
def test_what_a_row_does_not_say_was_not_measured(name: str, reason: str) -> None:
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    assert measure.score(CASE, make_row(cost_usd=None, usage={}, rerank_time_ms=None)) == Score(None, reason)


def test_naming_a_measure_is_cheap() -> None:
    code = "import sys, rag_harness; rag_harness.Score; print([m for m in ('numpy', 'pydantic') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert issubclass(RankingMeasure, RowMeasure)


# Whether anything reached the prompt, and whether the answer cites it, on rows whose value is known by hand.

ZERO, CITED = "zero_result_rate", "citation_rate"
CHUNKS = [make_chunk(f"page{n}.md#0") for n in range(2)]
NOTHING: dict[str, Any] = {"retrieved_chunks": [], "citations": []}


def row(number: int, **changes: Any) -> ExperimentResult:
    return make_row(query_id=f"q{number}", **{"retrieved_chunks": CHUNKS, "citations": [1], **changes})


def table(*rows: ExperimentResult, **more: Any) -> SuiteTable:
    return table_of(rows, measures=(ZERO, CITED), **more)


def score(name: str, of: ExperimentResult) -> Score:
    measure = measure_named(name)
    assert isinstance(measure, RowMeasure)
    return measure.score(case_of(of), of)


@pytest.mark.parametrize(
    ("changes", "zero", "cited"),
    [
        ({}, 0, 1),
        ({"citations": [2, 9]}, 0, 1),
        ({"citations": []}, 0, 0),
        ({"citations": [0, 3]}, 0, 0),
        ({"citations": [], "invalid_citations": [7]}, 0, 0),
        (NOTHING, 1, 0),
        ({**NOTHING, "citations": [1]}, 1, 0),
        ({**NOTHING, "candidates": [{"chunk_id": "page1.md#0", "score": 0.1}]}, 1, 0),
    ],
)
def test_what_reached_the_prompt_and_is_cited(changes: dict[str, Any], zero: float, cited: float) -> None:
    found = row(1, **changes)
    assert (score(ZERO, found).value, score(CITED, found).value) == (zero, cited)


def test_an_abstention_has_nothing_to_cite_but_may_have_had_nothing() -> None:
    declined = row(1, **NOTHING, abstained=True, llm_answer="I couldn't find relevant content.")
    assert score(ZERO, declined).value == 1
    assert score(CITED, declined) == Score(None, "an abstention, which claims nothing", undefined=True)


def test_a_question_that_the_documents_do_not_answer_should_find_nothing_and_its_answer_should_cite() -> None:
    negative: dict[str, Any] = {"query_type": "negative", "answerable": False}
    found = table(row(1, **negative, **NOTHING), row(2, **negative), row(3))
    assert found.values(ZERO, {}) == {"q3": 0.0}
    assert found.absent(ZERO, {}) == {"no answer in the documents": 2}
    assert found.values(CITED, {}) == {"q1": 0.0, "q2": 1.0, "q3": 1.0}


def test_an_error_and_a_lost_trial_count_the_worst() -> None:
    found = table(row(1), failed_row(query_id="q2"), row(3, abstained=True), row(4, citations=[]))
    assert found.values(ZERO, {}) == {"q1": 0.0, "q2": 1.0, "q3": 0.0, "q4": 0.0}
    assert found.values(CITED, {}) == {"q1": 1.0, "q2": 0.0, "q4": 0.0}
    assert found.absent(CITED, {}) == {"an abstention, which claims nothing": 1}
    assert found.unmeasured(CITED, {}) == 0, "there was nothing to measure"
    lost = table(row(1), cases=[case_of(row(1)), case_of(row(2))])
    assert (lost.values(ZERO, {}), lost.values(CITED, {})) == ({"q1": 0.0, "q2": 1.0}, {"q1": 1.0, "q2": 0.0})


def test_where_nothing_is_retrieved_or_answered_at_all_there_is_no_rate() -> None:
    bare = {**NOTHING, "candidates": [], "retrieval_time_ms": None}
    without = table(row(1, **bare))
    assert [without.absent(name, {}) for name in (ZERO, CITED)] == [{"no retrieval": 1}] * 2
    golden = table(golden_row("g1", ["a"]))
    assert [golden.absent(name, {}) for name in (ZERO, CITED)] == [{"no answer": 1}] * 2


def test_a_floor_that_lets_nothing_through_is_a_rate_of_1() -> None:
    assert table(row(1, **NOTHING, candidates=[]), row(2, **NOTHING, candidates=[])).aggregate([ZERO]) == {ZERO: 1.0}
