"""The trials of a run, flat: all of the run, nothing else, each value where it belongs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rag_harness.core.types import GOLDEN
from rag_harness.records.manifest import read_manifest, write_manifest
from rag_harness.records.scores import CHECKED, Author, CauseLine, ScoreLine, row_digest, write_causes
from rag_harness.tables.trials import Record, measure_column, read_trials
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import case, write_run
from tests.unit.tables.test_judged import F, scored
from tests.unit.tables.trial_run import ANSWERS, answers, judged, write_output


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return write_output(tmp_path / "output")


def by_id(output: Path) -> dict[str, Record]:
    return {record["query_id"]: record for record in read_trials(output)}


def test_every_selected_case_has_a_line_in_the_order_of_suites_and_cases(output: Path) -> None:
    trials = read_trials(output)
    states = [(record["experiment"], record["query_id"], record["status"]) for record in trials]
    answered = [("e3", f"q{n}", "ok") for n in range(len(ANSWERS))]
    assert states == [*answered, ("e3", "failed", "error"), ("e3", "lost", "lost"), (GOLDEN, "g1", "ok")]
    assert len(trials) == len(states)
    assert [record["query_id"] for record in trials] == [query_id for _, query_id, _ in states]  # a second time
    assert all(list(record) == list(trials.columns) for record in trials)


def test_what_a_row_says_stands_in_its_columns(output: Path) -> None:
    record = by_id(output)["q0"]
    shown = {name: record[name] for name in ("query_type", "label.topic", "answerable", "answer", "abstained", "error")}
    assert shown == {
        "query_type": "direct", "label.topic": "t0", "answerable": True, "answer": "30 days.", "abstained": False,
        "error": None,
    }  # fmt: skip
    assert (record["retrieved"], record["citations"]) == (["returns.md"], [1])
    took = {"total_ms": 1 / 3, "retrieval_ms": 2.0, "rerank_ms": 1.0, "llm_ms": 5.0, "ttft_ms": None, "waited_ms": 0.0}
    assert {name: record[name] for name in took} == took
    assert (record["prompt_tokens"], record["completion_tokens"], record["cost_usd"]) == (100, 10, 1e-7 / 3)
    assert (record["model"], record["profile"], record["mode"]) == ("embedded/extractive", "embedded", "auto")
    assert (record["fingerprint"], record["confidence"]) == ("aaaa", None)


def test_a_failure_and_a_lost_case_say_so_and_have_no_answer(output: Path) -> None:
    failed, lost = by_id(output)["failed"], by_id(output)["lost"]
    assert failed["error"] == "generate: ModelCallError: 503"
    assert (failed["answer"], failed["abstained"], failed["citations"], failed["model"]) == (
        None, None, None, "embedded/extractive",
    )  # fmt: skip
    assert (lost["query"], lost["error_rate"], lost["recall@5"]) == ("?", 1.0, 0.0)
    assert all(lost[name] is None for name in ("answer", "retrieved", "total_ms", "cost_usd", "fingerprint", "mode"))


def test_later_chunks_of_a_document_keep_their_places(output: Path, tmp_path: Path) -> None:
    golden = by_id(output)["g1"]
    assert (golden["retrieved"], golden["mrr@10"]) == (["b", None, "a"], pytest.approx(1 / 3))
    assert (golden["answer"], golden["abstained"], golden["token_f1"]) == (None, None, None)
    chunks = [make_chunk("a b.md#1"), make_chunk("a b.md#2"), make_chunk("c.md#1")]
    write_run(tmp_path, [make_row(retrieved_chunks=chunks, candidates=[])])
    assert by_id(tmp_path)["q1"]["retrieved"] == ["a b.md", None, "c.md"]


def test_a_column_is_there_where_its_measure_was_asked_for_though_nobody_measured(tmp_path: Path) -> None:
    row = make_row()
    write_run(tmp_path, [row], scores=[scored(row, F, None, reason="away")])
    manifest = read_manifest(tmp_path)
    gates = {
        "gate": ["e3: recall@7 >= 0", "e3: p95(total_ms) <= 9", "e3: nonsense >= 1"],
        "data": [{"gates": ["e3: tokens <= 9"]}],
    }
    write_manifest(tmp_path, manifest.model_copy(update={"settings": manifest.settings | gates}))
    checked = ScoreLine("metamorphic_case", 1, "e3", "q1", row_digest(row), "", Author("metamorphic", "", ""), 1.0)
    (tmp_path / CHECKED).mkdir()
    (tmp_path / CHECKED / "e3.jsonl").write_bytes(checked.line())
    trials, record = read_trials(tmp_path), by_id(tmp_path)["q1"]
    assert (record[F], record["recall@7"], record["tokens"], record["metamorphic_case"]) == (None, 1.0, 110, 1.0)
    assert list(trials.columns).count("total_ms") == 1
    assert "nonsense" not in trials.columns
    columns = list(trials.columns)
    assert columns.index("cause_detail") < columns.index("recall@1") < columns.index(F) < columns.index("total_ms")


def test_a_measure_that_is_called_as_another_column_takes_none_from_it() -> None:
    assert [measure_column(name) for name in ("answer", "recall@5")] == ["measure.answer", "recall@5"]


def test_causes_stand_beside_the_rows_that_they_are_of(output: Path) -> None:
    said = {"experiment": "e3", "cause": "Logic Failure", "detail": "wrong refusal"}
    lines = [CauseLine(query_id="q0", fingerprint="aaaa", **said), CauseLine(query_id="q1", fingerprint="old", **said)]
    write_causes(output, lines)
    records = by_id(output)
    assert [(records[n]["cause"], records[n]["cause_detail"]) for n in ("q0", "q1")] == [
        ("Logic Failure", "wrong refusal"),
        (None, None),
    ]


def test_rows_of_other_runs_and_what_a_kill_tore_do_not_count(tmp_path: Path) -> None:
    rows = answers("yes", "no")
    write_run(tmp_path, rows, selected={"e3": ["q0", "q1", "q2"]}, cases=[case(f"q{n}") for n in range(5)],
              not_run={"e3": ["q2"]})  # fmt: skip
    other = [make_row(query_id=name, llm_answer="other", fingerprint="bbbb") for name in ("q0", "q1", "q4")]
    late = make_row(query_id="q4", llm_answer="not selected")
    again = make_row(query_id="q0", llm_answer="a second row of it")
    lines = [*(row.line() for row in [*other, rows[0], again, late]), rows[1].line()[:40]]
    (tmp_path / "e3.jsonl").write_text("".join(lines))
    found = [(record["query_id"], record["status"], record["answer"]) for record in read_trials(tmp_path)]
    assert found == [("q0", "ok", "yes"), ("q1", "lost", None)]


def test_a_row_of_a_case_that_this_run_lost_is_an_earlier_one(tmp_path: Path) -> None:
    write_run(tmp_path, answers("yes", "no"))
    manifest = read_manifest(tmp_path)
    suite = manifest.suites["e3"].model_copy(update={"lost": ["q1"]})
    write_manifest(tmp_path, manifest.model_copy(update={"suites": {"e3": suite}}))
    assert [(record["status"], record["answer"]) for record in read_trials(tmp_path)] == [("ok", "yes"), ("lost", None)]


def test_scores_without_rows_are_of_lost_cases(tmp_path: Path) -> None:
    rows = answers("yes")
    write_run(tmp_path, rows, scores=judged(rows))
    (tmp_path / "e3.jsonl").unlink()
    (record,) = read_trials(tmp_path)
    assert (record["status"], record[F], record["answer"]) == ("lost", 0.0, None)


def test_a_row_of_an_earlier_release_has_a_line(tmp_path: Path) -> None:
    row = make_row()
    write_run(tmp_path, [row])
    old = json.loads(row.line())
    for name in ("stages", "decisions", "confidence", "ranking", "answerable", "inputs", "schema_version"):
        del old[name]
    (tmp_path / "e3.jsonl").write_text(json.dumps(old) + "\n")
    (record,) = read_trials(tmp_path)
    assert (record["status"], record["answer"], record["retrieved"]) == ("ok", row.llm_answer, ["returns.md"])
