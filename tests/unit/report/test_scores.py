"""The table of a suite: who counts, as what."""

from __future__ import annotations

from typing import Any

import pytest

from rag_harness.errors import SettingsError
from rag_harness.gates import judge, parse_gate
from rag_harness.report.scores import ScoredCase, SuiteTable, check_measure, known_measure
from rag_harness.results.row import ExperimentResult

DIRECT, HOP, NEGATIVE = ({"query_type": name} for name in ("direct", "multi_hop", "negative"))
GOLD = {"a": 1}


def row(**changes: Any) -> ExperimentResult:
    names = ("retrieved_chunks", "candidates", "citations", "invalid_citations", "context_reference")
    lists: dict[str, Any] = {name: [] for name in names}
    texts = dict.fromkeys(("query", "llm_answer", "raw_output", "model", "profile", "fingerprint"), "")
    times = dict.fromkeys(("rerank_time_ms", "llm_time_ms", "ttft_ms", "reasoning_steps", "error"))
    plain = lists | texts | times | {"query_id": "q", "experiment": "e3", "query_type": "direct", "ground_truth": "yes"}
    rest = {"metadata": {}, "usage": {}, "abstained": False, "mode": "auto", "dry_run": False, "status": "ok"}
    return ExperimentResult.model_validate(plain | rest | {"retrieval_time_ms": 1, "total_time_ms": 1} | changes)


def table(*cases: ScoredCase, others: int = 0) -> SuiteTable:
    known = {case.case_id: case.slices for case in cases}
    return SuiteTable(cases, known | {f"other{n}": DIRECT for n in range(others)})


FOUND = ScoredCase("q1", DIRECT, ["a", "b"], GOLD)
SECOND = ScoredCase("q2", HOP, ["b", "a"], GOLD)
NO_GOLD = ScoredCase("q3", NEGATIVE, ["b"], {})
RAISED = ScoredCase("q4", DIRECT, ["a"], GOLD, state="error")
LOST = ScoredCase("q5", HOP, ["a"], GOLD, state="lost")


def test_rankings_are_scored_over_the_cases_with_gold_and_a_failure_counts_0() -> None:
    suite = table(FOUND, SECOND, NO_GOLD, RAISED, LOST)
    assert suite.values("mrr@5", {}) == {"q1": 1.0, "q2": 0.5, "q4": 0.0, "q5": 0.0}
    assert suite.values("mrr@5", HOP) == {"q2": 0.5, "q5": 0.0}
    assert suite.values("recall@1", NEGATIVE) == {}
    assert suite.values("mrr@5", {"query_type": "direct", "difficulty": "hard"}) == {}


def test_cases_are_counted_by_slice() -> None:
    suite = table(FOUND, SECOND, LOST, others=2)
    assert (suite.total_of({}), suite.selected_of({}), suite.lost_of({})) == (5, 3, 1)
    assert (suite.total_of(HOP), suite.selected_of(HOP), suite.lost_of(HOP)) == (2, 2, 1)
    assert (suite.total_of(DIRECT), suite.selected_of(DIRECT), suite.lost_of(DIRECT)) == (3, 1, 0)


def test_aggregates_and_breakdown() -> None:
    suite = table(FOUND, SECOND, NO_GOLD)
    assert suite.aggregate(["mrr@5", "recall@1", "token_f1"]) == {"mrr@5": 0.75, "recall@1": 0.5, "token_f1": None}
    assert suite.by("query_type", ["mrr@5"]) == {
        "direct": {"mrr@5": 1.0},
        "multi_hop": {"mrr@5": 0.5},
        "negative": {"mrr@5": None},
    }
    assert suite.by("difficulty", ["mrr@5"]) == {}
    assert table(FOUND, others=1).slices() == {"query_type": {"direct"}}


def test_errors_are_counted_with_and_without_rows() -> None:
    assert table(FOUND, SECOND, RAISED, LOST).aggregate(["error_rate"]) == {"error_rate": 0.5}


def test_answers_count_the_worst_where_there_is_none() -> None:
    right = ScoredCase("q1", DIRECT, ["a"], GOLD, row(llm_answer="yes"), ("quote",))
    # A chunk with the evidence reached the prompt and then the model failed: no answer came of it.
    chunk = {"chunk_id": "a#0", "text": "quote", "score": 1, "metadata": {"filename": "a", "section": ""}}
    raised = ScoredCase("q2", DIRECT, ["a"], GOLD, row(retrieved_chunks=[chunk]), ("quote",), "error")
    lost = ScoredCase("q3", DIRECT, [], GOLD, None, ("quote",), "lost")
    lost_negative = ScoredCase("q4", NEGATIVE, [], {}, None, (), "lost")
    suite = table(right, raised, lost, lost_negative)
    assert suite.values("token_f1", {}) == {"q1": 1.0, "q2": 0.0, "q3": 0.0}
    assert suite.values("evidence_recall", {}) == {"q1": 0.0, "q2": 0.0, "q3": 0.0}
    assert suite.values("citation_recall", {}) == {"q3": 0.0}
    assert suite.values("false_abstention_rate", {}) == {"q1": 0.0, "q2": 1.0, "q3": 1.0}
    assert suite.values("abstention_rate", {}) == {"q1": 0.0, "q2": 0.0, "q3": 0.0, "q4": 0.0}


def test_an_experiment_that_does_not_retrieve_has_no_recall() -> None:
    alone = row(retrieval_time_ms=None, context_reference=["a"], llm_answer="yes")
    closed_book = table(ScoredCase("q1", DIRECT, [], GOLD, alone, ("quote",)))
    nothing_found = table(ScoredCase("q1", DIRECT, [], GOLD, row(context_reference=["a"]), ("quote",)))
    measures = ["recall@5", "citation_recall", "evidence_recall"]
    assert closed_book.aggregate(measures) == dict.fromkeys(measures)
    assert nothing_found.aggregate(measures) == dict.fromkeys(measures, 0.0)
    assert closed_book.aggregate(["token_f1"]) == {"token_f1": 1.0}
    assert table(ScoredCase("q1", DIRECT, [], GOLD)).aggregate(["recall@5"]) == {"recall@5": 0.0}


def test_a_table_is_what_gates_judge() -> None:
    suites = {"golden": table(FOUND, SECOND, NO_GOLD), "e3": table(FOUND, others=1)}
    found = judge(parse_gate("mrr@k >= 0.75", 5), suites)
    assert (found.state, found.value, found.n) == ("passed", 0.75, 2)
    assert judge(parse_gate("e3: recall@1 >= 0", 5), suites).reason == "1 of 2 cases selected"


@pytest.mark.parametrize("name", ["recall@5", "all@3", "r_precision", "token_f1", "error_rate"])
def test_known_measures(name: str) -> None:
    assert known_measure(name)
    assert check_measure(name) == name


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("recal@5", "Did you mean 'recall'?"),
        ("token_f2", "Did you mean 'token_f1'?"),
        ("token_f1@5", "Did you mean 'token_f1'?"),
        ("recall", "needs a cutoff"),
        ("r_precision@5", "takes none"),
    ],
)
def test_unknown_measures(name: str, hint: str) -> None:
    assert not known_measure(name)
    with pytest.raises(SettingsError, match=hint.replace("?", r"\?")):
        check_measure(name)
