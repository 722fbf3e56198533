"""Judged scores in tables, and the scorecard that is read from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.evaluation.measures.judged import CATEGORIES, kinds_shown
from rag_harness.records.manifest import SuiteRecord
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs.gates import GateRules, judge, parse_gate
from rag_harness.tables.blocks import MeasureArrays
from rag_harness.tables.judged_columns import answer_kinds
from rag_harness.tables.suite_table import SuiteTable
from rag_harness.tables.summary import judge_said, maker_of, one_family, scorecard_lines
from tests.unit.rows import failed_row, make_row
from tests.unit.suite_tables import tables_of

CP, F, AR = NAMES = ("context_precision", "faithfulness", "answer_relevancy")
WHO = Author("embedded", "embedded/alignment", "1")


def scored(row: ExperimentResult, measure: str, value: float | None, **more: Any) -> ScoreLine:
    digest = row_digest(row)
    return ScoreLine(measure, 1, row.experiment, row.query_id, digest, "", **({"author": WHO, "value": value} | more))


def record(who: Author | None = None, **more: Any) -> SuiteRecord:
    authors = [(who.judge, who.model, who.revision)] if who else []
    return SuiteRecord(data="queries", file="", fingerprints=[], total=3, selected="all", authors=authors, **more)


def tables(rows: Sequence[ExperimentResult], scores: Sequence[ScoreLine], *more: str) -> Mapping[str, SuiteTable]:
    return tables_of(rows, measures=[*NAMES, "g_mean", "hri", *more], scores=scores)


def table(rows: Sequence[ExperimentResult], scores: Sequence[ScoreLine]) -> SuiteTable:
    return tables(rows, scores)["e3"]


def test_scores_stand_beside_the_rows_that_they_are_of() -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(3)]
    lines = [scored(rows[0], F, 0.5), scored(rows[1], F, 1.0), scored(rows[2], F, None, reason="half a JSON")]
    found = table(rows, lines)
    assert found.values(F, {}) == {"q0": 0.5, "q1": 1.0}
    assert found.absent(F, {}) == {"no verdict: half a JSON": 1}
    assert found.unmeasured(F, {}) == 1
    assert found.unmeasured(AR, {}) == 3  # nobody has judged it
    assert found.absent(AR, {}) == {"no judgement": 3}


def test_more_reasons_than_can_be_told_apart_do_not_make_a_failure_of_what_is_undefined() -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(262)]
    failed = [scored(row, F, None, reason=f"error {n}") for n, row in enumerate(rows[:260])]
    undefined = [scored(row, F, None, reason="no context", undefined=True) for row in rows[260:]]
    assert table(rows, [*failed, *undefined]).unmeasured(F, {}) == 260


def test_the_scorecard_fits_100_columns_whatever_is_judged() -> None:
    names = ["answer_correctness", "context_recall", "noise_sensitivity", "self_knowledge", "context_utilisation"]
    rows = [make_row(query_id=f"q{n}") for n in range(3)]
    lines = [scored(row, name, 0.5) for row in rows for name in [*NAMES, "factuality", "nugget_recall", *names]]
    said = scorecard_lines(tables(rows, lines, "factuality", "nugget_recall", *names), {"e3": record(WHO)})
    assert max(map(len, said)) <= 100
    heads = " ".join(line for line in said if line.startswith("experiment"))
    assert set(names) <= set(heads.split())


@pytest.mark.parametrize(
    "changed",
    [{"row": "of an older answer"}, {"version": 2}, {"author": replace(WHO, revision="2")}, {"query_id": "q9"}],
)
def test_a_score_of_something_else_does_not_count(changed: Mapping[str, Any]) -> None:
    row = make_row()
    other = replace(scored(row, F, 0.0), **changed)
    assert table([row], [scored(row, F, 1.0), other]).values(F, {}) == {"q1": 1.0}


def test_of_two_lines_the_later_one_holds() -> None:
    row = make_row()
    failed, said = scored(row, F, None, reason="away"), scored(row, F, 0.5)
    assert table([row], [failed, said]).values(F, {}) == {"q1": 0.5}
    again = table([row], [said, failed])
    assert (again.values(F, {}), again.unmeasured(F, {})) == ({}, 1)


def test_a_score_of_a_case_that_the_measure_does_not_apply_to_does_not_count() -> None:
    row = make_row(answerable=False, context_reference=[])
    found = table([row], [scored(row, CP, 0.5)])
    assert found.values(CP, {}) == {}
    assert found.unmeasured(CP, {}) == 0


def test_composites_are_made_of_the_scores_of_the_row() -> None:
    row, other = make_row(), make_row(query_id="q2")
    lines = [scored(row, CP, 0.8), scored(row, F, 0.5), scored(row, AR, 0.4)]
    lines += [scored(other, CP, None, undefined=True, reason="no ground truth"), scored(other, AR, -0.2)]
    lines += [scored(other, F, 0.25)]
    found = table([row, other], lines)
    assert found.values("g_mean", {}) == {"q1": pytest.approx((0.8 * 0.5 * 0.4) ** (1 / 3))}
    assert found.values("hri", {}) == {"q1": pytest.approx(0.2), "q2": 0.0}
    assert found.absent("g_mean", {}) == {"context_precision: no ground truth": 1}
    assert found.unmeasured("g_mean", {}) == 0


def test_an_error_counts_the_worst() -> None:
    row, error = make_row(), failed_row(query_id="q2")
    found = table([row, error], [scored(row, name, 1.0) for name in NAMES])
    assert found.values(F, {}) == {"q1": 1.0, "q2": 0.0}
    assert found.values("g_mean", {}) == {"q1": 1.0, "q2": 0.0}
    assert found.values("hri", {}) == {"q1": 0.0, "q2": 1.0}


def test_each_answer_has_a_kind_and_an_experiment_without_context_has_none() -> None:
    rows = [make_row(query_id="q0"), make_row(query_id="q1", abstained=True), make_row(query_id="q2"), failed_row()]
    rows[3] = failed_row(query_id="q3")
    lines = [scored(rows[0], name, 0.9) for name in NAMES]
    lines += [scored(rows[2], CP, 0.9), scored(rows[2], F, None, reason="away"), scored(rows[2], AR, 0.9)]
    found = table(rows, lines)
    third = pytest.approx(1 / 3)
    assert found.shares() == dict.fromkeys(CATEGORIES, 0) | {
        "Clean Pass": third,
        "Wrong Abstention": third,
        "Unmeasured": third,
    }
    without = [scored(rows[0], AR, 0.9), *(scored(rows[0], name, None, undefined=True) for name in (CP, F))]
    assert table(rows[:1], without).shares() == {}


def test_a_gate_hangs_on_no_more_unmeasured_cases_than_it_may() -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(20)]
    lines = [scored(row, F, 1.0) for row in rows[:18]] + [scored(row, F, None, reason="away") for row in rows[18:]]
    found = tables(rows, lines)
    gate = parse_gate("e3: faithfulness >= 0.9", 10)
    failed = judge(gate, found, rules=GateRules(max_unmeasured=0.05))
    assert (failed.state, failed.value) == ("failed", 1.0)
    assert failed.reason == (
        "10.0% of 20 cases could not be measured, more than 5.0% (--rag-max-unmeasured): 2 of 20 have no verdict: away"
    )
    assert judge(gate, found, rules=GateRules(max_unmeasured=0.1)).state == "passed"


@pytest.mark.parametrize(("without", "cases", "most"), [(29, 100, 0.29), (63, 180, 0.35), (29, 50, 0.58)])
def test_exactly_as_many_as_it_may_are_no_more_for_rounding(without: int, cases: int, most: float) -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(cases)]
    lines = [scored(row, F, None if n < without else 1.0, reason="away") for n, row in enumerate(rows)]
    gate = parse_gate("e3: faithfulness >= 0.9", 10)
    assert judge(gate, tables(rows, lines), rules=GateRules(max_unmeasured=most)).state == "passed"


def _study() -> Mapping[str, SuiteTable]:
    rows = [make_row(experiment=name, query_id=f"q{n}") for name in ("e1", "e2", "e3") for n in range(12)]
    lines = [
        scored(row, name, (n % 12) / 12)
        for n, row in enumerate(rows)
        for name in (*NAMES, "factuality", "context_recall")
    ]
    return tables(rows, lines, "factuality", "hri_gold", "context_recall")


def test_the_scorecard_says_whose_it_is_and_fits_100_columns() -> None:
    lines = scorecard_lines(_study(), dict.fromkeys(("e1", "e2", "e3"), record(WHO)))
    assert lines[0] == "judged by embedded/alignment (words and vectors compared, no LLM)"
    assert lines[1].split() == ["experiment", "CP", "F", "AR", "G_mean", "HRI", "p95"]
    assert lines[2].split()[:3] == ["e1", "0.46", "±0.20"]
    assert max(map(len, lines)) <= 100


def test_the_scorecard_of_a_suite_that_was_not_judged_is_empty() -> None:
    assert scorecard_lines(tables_of([make_row()]), {"e3": record()}) == []


def test_the_scorecard_counts_what_has_no_score() -> None:
    rows = [make_row(query_id=f"q{n}") for n in range(3)]
    lines = [scored(rows[0], F, 1.0), *(scored(row, F, None, reason="half a JSON") for row in rows[1:])]
    spent = {"prompt_tokens": 12_000, "completion_tokens": 900, "calls": 9, "recorded": 2}
    suites = {"e3": record(Author("fused", "gpt-4o", "1"), judging=spent, asks_model={"fused": True})}
    said = scorecard_lines(tables_of(rows, measures=[F], scores=lines), suites)
    assert said[1] == "judging took 9 calls, 2 of them replayed; 12,000 tokens in, 900 out"
    assert said[-1] == "e3: faithfulness: 2 of 3 have no verdict: half a JSON"
    assert said[0] == "judged by gpt-4o (an LLM, method fused)"
    assert "e3          1.00" in said  # one value bounds nothing


@pytest.mark.parametrize(
    ("judge_model", "answering", "warns"),
    [
        ("openai/gpt-4o", ["gpt-4o-mini"], True),
        ("x-ai/grok-2", ["x-ai/grok-beta"], True),
        ("claude-sonnet-4", ["gpt-4o"], False),
        ("embedded/alignment", ["embedded/extractive"], False),
        ("my-own", ["my-own-too"], False),
        ("some/model", ["some/other"], True),
        ("gpt-4o", [""], False),
        ("azure/gpt-4o", ["openai/o3"], True),
        ("openai:gpt-4o", ["gpt-4o-mini"], True),
        ("openrouter/meta-llama/llama-3", ["meta-llama-3"], True),
    ],
)
def test_a_judge_of_the_answers_own_family_is_said(judge_model: str, answering: list[str], warns: bool) -> None:
    assert bool(one_family(judge_model, answering)) == warns


def test_makers() -> None:
    assert [maker_of(name) for name in ("o3-mini", "meta-llama/llama-3", "llama-3.1", "", "3")] == [
        "openai",
        "meta",
        "meta",
        "",
        "",
    ]


def test_a_judge_that_cannot_be_had_is_said() -> None:
    assert judge_said("nobody", "", None) == "nobody: the judge cannot be had"


# The study's categories of answers, one by one and at their borders.

SHARE, COSINE = st.floats(0, 1), st.floats(-1, 1)


def kind_of(values: Sequence[float | None], abstained: bool, answerable: bool) -> str:
    """Return the kind of one answer, by its context precision, faithfulness and relevancy."""
    parts = [
        MeasureArrays(np.array([np.nan if each is None else each]), np.array([each is None]), ()) for each in values
    ]
    (found,) = answer_kinds(parts, np.array([abstained]), np.array([answerable]))
    return found


@pytest.mark.parametrize(
    ("cp", "f", "ar", "expected"),
    [
        (0.71, 0.71, 0.71, "Clean Pass"),
        (0.7, 0.8, 0.8, "Unclassified"),
        (0.8, 0.7, 0.8, "Unclassified"),
        (0.8, 0.8, 0.7, "Unclassified"),
        (0.61, 0.39, 0.9, "Hallucination"),
        (0.61, 0.39, 0.1, "Hallucination"),
        (0.6, 0.39, 0.9, "Unclassified"),
        (0.61, 0.4, 0.9, "Unclassified"),
        (0.39, 0.71, 0.9, "Retrieval Failure"),
        (0.39, 0.71, 0.1, "Retrieval Failure"),
        (0.4, 0.71, 0.9, "Unclassified"),
        (0.4, 0.71, 0.39, "Irrelevant"),
        (0.9, 0.71, -0.2, "Irrelevant"),
        (0.9, 0.7, 0.39, "Unclassified"),
        (0.39, 0.39, 0.39, "Total Failure"),
        (0.4, 0.39, 0.39, "Unclassified"),
        (0.39, 0.39, 0.4, "Unclassified"),
    ],
)
def test_categories_and_their_borders(cp: float, f: float, ar: float, expected: str) -> None:
    assert kind_of([cp, f, ar], abstained=False, answerable=True) == expected


def test_what_the_five_cannot_say() -> None:
    good = [0.9, 0.9, 0.9]
    assert kind_of(good, abstained=True, answerable=False) == "Correct Abstention"
    assert kind_of(good, abstained=True, answerable=True) == "Wrong Abstention"
    assert kind_of([0.9, None, 0.9], abstained=False, answerable=True) == "Unmeasured"
    assert kind_of([None, None, None], abstained=False, answerable=True) == "Unmeasured"


def test_who_answers_what_the_documents_do_not_answer_is_of_a_kind_of_its_own() -> None:
    """However well the answer keeps to its chunks, and whether or not that could be measured."""
    for found in ([0.9, 0.9, 0.9], [0.9, 0.1, 0.9], [None, None, None]):
        assert kind_of(found, abstained=False, answerable=False) == "Answered Unanswerable"
    assert kinds_shown(["Unmeasured"]) == [*CATEGORIES[:5], "Unmeasured"]


def test_the_order_of_the_categories() -> None:
    assert CATEGORIES == (
        "Clean Pass", "Hallucination", "Retrieval Failure", "Irrelevant", "Total Failure", "Unclassified",
        "Correct Abstention", "Wrong Abstention", "Answered Unanswerable", "Unmeasured",
    )  # fmt: skip


@given(SHARE, SHARE, COSINE)
def test_every_answer_has_a_category(cp: float, f: float, ar: float) -> None:
    assert kind_of([cp, f, ar], abstained=False, answerable=True) in CATEGORIES[:6]
