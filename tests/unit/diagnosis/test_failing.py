"""Which trials failed, and in which order they are looked at."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.types import Case
from rag_harness.diagnosis import failures
from rag_harness.diagnosis.explainer import Explainer
from rag_harness.diagnosis.failures import (
    badness_of,
    failed_gates,
    possible_failures,
    rows_of,
    suspects,
    tables_of,
    worst_first,
)
from rag_harness.records.manifest import read_manifest
from rag_harness.records.row import ExperimentResult
from rag_harness.records.scores import Author, ScoreLine, row_digest
from rag_harness.runs.gates import parse_gate
from rag_harness.tables.suite_table import SuiteTable
from tests.unit.diagnosis.made_up import CASES, explainer
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import write_run

AUTHOR = Author("mock", "mock/word-overlap", "1")
GOOD = {case.query.query_id: case.ground_truth for case in CASES}


def row(n: int, answer: str = "", **changes: object) -> ExperimentResult:
    case = CASES[n]
    chunk = make_chunk(f"{case.context_reference[0]}#chunk_2", text=case.evidence[0].quote)
    usual = {"experiment": "x1", "query_id": f"q{n}", "query": case.query.text, "retrieved_chunks": [chunk]}
    return make_row(**(usual | {"llm_answer": answer or GOOD[f"q{n}"], "ground_truth": case.ground_truth} | changes))


def score(of: ExperimentResult, measure: str, value: float) -> ScoreLine:
    return ScoreLine(measure, 1, "x1", of.query_id, row_digest(of), "", AUTHOR, value)


def judged(of: ExperimentResult, precision: float, faithful: float, relevant: float) -> list[ScoreLine]:
    names = ("context_precision", "faithfulness", "answer_relevancy")
    scores = [score(of, name, value) for name, value in zip(names, (precision, faithful, relevant), strict=True)]
    return [*scores, score(of, "nugget_recall", 0.1)]


def table(output: Path) -> SuiteTable:
    return tables_of(output, read_manifest(output))["x1"]


def run(output: Path, rows: list[ExperimentResult], scores: list[ScoreLine]) -> Explainer:
    write_run(output, rows, CASES[: len(rows)], scores=scores)
    return explainer(output, None)


def test_a_gate_that_failed_has_those_below_its_threshold_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "WORST", 0)
    rows = [row(n) for n in range(3)]
    scores = [line for n, each in enumerate(rows) for line in judged(each, 0.5, 0.5 + n / 10, 0.5)]
    write_run(tmp_path, rows, CASES[:3], scores=scores)
    verdicts = [
        {"gate": "x1: faithfulness >= 0.55", "state": "failed"},
        {"gate": "x1: faithfulness >= 0.65", "state": "passed"},
        {"gate": "x1: p95(total_ms) <= 1", "state": "failed"},
        {"gate": "x1: faithfulness >= x2", "state": "failed"},
        {"gate": "x1: pass^3(faithfulness) >= 0.9", "state": "failed"},
        {"gate": "x2: faithfulness >= 0.9", "state": "failed"},
    ]
    (tmp_path / "summary.json").write_text(json.dumps({"gates": verdicts}))
    gates = failed_gates(tmp_path, "x1", 10)
    assert [str(gate) for gate in gates] == ["x1: faithfulness >= 0.55"]
    assert list(suspects(table(tmp_path), failed=gates)) == ["q0"]
    assert list(suspects(table(tmp_path))) == []
    (tmp_path / "summary.json").write_text("[]")
    assert failed_gates(tmp_path, "x1", 10) == []


def test_failed_categories_are_all_taken_and_the_worst_beside_them_by_hri(tmp_path: Path) -> None:
    rows = [row(0, "Who knows?"), row(1, "Perhaps."), row(2, "Some day."), row(3)]
    scores = [
        *judged(rows[0], 0.9, 0.1, 0.5),  # Hallucination, HRI 0.45
        *judged(rows[1], 0.2, 0.9, 0.9),  # Retrieval Failure, HRI 0.09
        *judged(rows[2], 0.5, 0.5, 0.9),  # no failed category, HRI 0.45
        *judged(rows[3], 0.9, 0.9, 0.9),
    ]
    lines = run(tmp_path, rows, scores).every()
    assert [(line.query_id, line.category) for line in lines] == [
        ("q0", "Hallucination"),
        ("q2", ""),
        ("q1", "Retrieval Failure"),
    ]
    assert [round(line.hri or 0, 2) for line in lines] == [0.45, 0.45, 0.09]


@pytest.mark.parametrize("worst", [-1, 0, 1, 2, 99])
def test_so_many_of_the_worst_as_are_asked_for_are_looked_at_and_no_others(tmp_path: Path, worst: int) -> None:
    rows = [row(0), row(1, "I don't know.", abstained=True), row(2, "No idea.")]
    write_run(tmp_path, rows, CASES[:3], scores=judged(rows[0], 0.9, 0.1, 0.5))  # Hallucination, yet it is right
    gates = [parse_gate("x1: faithfulness >= 0.9", 10)]
    assert list(suspects(table(tmp_path), worst, gates)) == ["q1", "q2", "q0"][: max(worst, 0)]
    assert list(suspects(table(tmp_path), failed=gates)) == ["q1", "q2", "q0"]


def test_what_has_no_hri_comes_after_what_has_one(tmp_path: Path) -> None:
    rows = [row(0, "I don't know.", abstained=True), row(1, "Perhaps.")]
    lines = run(tmp_path, rows, judged(rows[1], 0.9, 0.3, 0.1)).every()
    assert [(line.query_id, line.category) for line in lines] == [("q1", "Hallucination"), ("q0", "Wrong Abstention")]


def test_a_right_answer_of_a_failed_category_makes_the_judge_doubtful(tmp_path: Path) -> None:
    rows = [row(0)]
    (line,) = run(tmp_path, rows, judged(rows[0], 0.9, 0.1, 0.9)).every()
    assert (line.cause, line.detail) == ("Judge Doubtful", "the answer is right")
    assert line.evidence == "Hallucination, yet the answer carries the gold"


def test_measures_that_contradict_the_category_make_it_doubtful_too(tmp_path: Path) -> None:
    rows = [row(0, "A month and a day.")]
    scores = [each for each in judged(rows[0], 0.9, 0.1, 0.9) if each.measure != "nugget_recall"]
    (line,) = run(tmp_path, rows, [*scores, score(rows[0], "nugget_recall", 0.9)]).every()
    assert line.detail == "measures contradict each other"
    assert "nugget_recall 0.90" in line.evidence


def test_without_a_judge_refusals_and_answers_that_share_no_word_come_first(tmp_path: Path) -> None:
    rows = [
        row(0),
        row(1, "I don't know.", abstained=True),
        row(2, "The tent may be returned within 5 days."),
        row(3, "No idea."),
    ]
    assert [line.query_id for line in run(tmp_path, rows, []).every()] == ["q1", "q3", "q2"]


def test_wrong_answers_come_first_then_what_nothing_checks_whatever_a_judge_says(tmp_path: Path) -> None:
    unchecked = row(3, "No idea, perhaps ask them.", ground_truth="")
    rows = [row(0), row(1, "I don't know.", abstained=True), row(2, "No idea."), unchecked]
    cases = [*CASES[:3], Case(CASES[3].query)]
    write_run(tmp_path, rows, cases, scores=judged(rows[0], 0.5, 0.3, 0.9))  # HRI 0.63, yet its answer is right
    found = table(tmp_path)
    assert [found.ids[place] for place in worst_first(found)] == ["q1", "q2", "q3", "q0"]
    assert list(suspects(found, worst=1)) == ["q1"]
    assert [found.ids[place] for place in possible_failures(found)] == ["q1", "q2"]


def test_how_bad_words_are_is_below_every_hri(tmp_path: Path) -> None:
    rows = [row(0), row(1, "I don't know.", abstained=True), row(2, "No idea.")]
    write_run(tmp_path, rows, CASES[:3])
    found = table(tmp_path)
    assert badness_of(found).tolist() == [-2.0, -1.0, -1.0]
    unmeasured = SuiteTable(found.ids, found.labels, found.states, {}, found.totals)
    assert badness_of(unmeasured).tolist() == [-2.0] * 3
    assert possible_failures(unmeasured) == []


def test_who_answers_what_has_no_answer_has_failed(tmp_path: Path) -> None:
    nothing = Case(CASES[0].query, query_type="negative", answerable=False)
    told = row(0, "Surely 31 days.", query_type="negative", answerable=False, ground_truth="")
    write_run(tmp_path, [told], [nothing])
    (line,) = explainer(tmp_path, None).every()
    assert line.detail == "answered what is not in the documents"


def test_who_rightly_refuses_is_none_of_the_worst(tmp_path: Path) -> None:
    negative: dict[str, Any] = {"query_type": "negative", "answerable": False, "ground_truth": ""}
    refuses, invents = row(0, "I don't know.", abstained=True, **negative), row(1, "Surely 31 days.", **negative)
    nothing = [Case(each.query, query_type="negative", answerable=False) for each in CASES[:2]]
    write_run(tmp_path, [refuses, invents, row(2, "The tent may be returned.")], [*nothing, CASES[2]])
    assert list(suspects(table(tmp_path), worst=2)) == ["q1", "q2"]


def test_a_refusal_in_a_case_without_gold_is_undetermined(tmp_path: Path) -> None:
    bare = Case(CASES[0].query)
    write_run(tmp_path, [row(0, "I don't know.", abstained=True, ground_truth="")], [bare])
    (line,) = explainer(tmp_path, None).every()
    assert (line.cause, line.evidence) == ("Undetermined", "the case has neither ground truth nor evidence")
    write_run(tmp_path, [row(0, "Some day.", ground_truth="")], [bare])
    assert explainer(tmp_path, None).every() == []


def test_rows_of_another_fingerprint_are_of_another_run(tmp_path: Path) -> None:
    write_run(tmp_path, [row(0, "No idea.")], CASES[:1])
    with (tmp_path / "x1.jsonl").open("a") as stream:
        stream.write(row(0, "Other.", fingerprint="bbbb").line())
    found = list(rows_of(tmp_path, read_manifest(tmp_path), "x1", lambda row: row.query_id == "q0"))
    assert [each.llm_answer for _, each in found] == ["No idea."]
