"""The trials of a run, flat: as records, CSV, Parquet and frames."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pandas
import polars
import pyarrow.parquet
import pytest

import rag_harness
from rag_harness.core.errors import DataError, PrerequisiteError, SettingsError
from rag_harness.core.types import GOLDEN
from rag_harness.evaluation.measures import default_measures, measure_named
from rag_harness.records.manifest import read_manifest, write_manifest
from rag_harness.records.scores import CHECKED, Author, CauseLine, ScoreLine, row_digest, write_causes
from rag_harness.tables.reader import read_tables
from rag_harness.tables.trials import Record, TrialRecords, measure_column, read_trials, write_csv, write_parquet
from tests.unit.rows import make_chunk, make_row
from tests.unit.suite_tables import case, write_run
from tests.unit.tables.test_judged import F, scored
from tests.unit.tables.trial_run import ANSWERS, NASTY, answers, judged, write_output

# The trials of a run as CSV, Parquet and frames: equal to what tables say, and to each other.


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return write_output(tmp_path / "output")


def is_kept(text: str) -> str:
    """Return what rows and CSV make of text: half a character and NUL are replaced, a mark of direction is written."""
    return text.replace("\ud83d", "\ufffd").replace("\0", "\ufffd").replace("\u202e", r"\u202e")


def test_means_of_the_columns_are_those_of_the_tables(output: Path) -> None:
    manifest = read_manifest(output)
    tables = read_tables(
        output,
        lambda suite: [
            *default_measures(suite == GOLDEN, 10),
            *map(measure_named, manifest.suites[suite].judged),
        ],
    )
    frame = rag_harness.load_results(output, "pandas")
    compared = 0
    for name, table in tables.items():
        of_suite = frame[frame["experiment"] == name]
        for measure, mean in table.aggregate(list(table.columns)).items():
            found = of_suite[measure].mean()
            compared += mean is not None
            assert (None if pandas.isna(found) else found) == (None if mean is None else pytest.approx(mean, rel=1e-12))
        for topic, means in table.by("topic", ["recall@5", F] if F in table.columns else []).items():
            found = of_suite[of_suite["label.topic"] == topic][list(means)].mean().to_dict()
            assert found == pytest.approx(means, rel=1e-12)
        shares = of_suite["category"].value_counts(normalize=True).to_dict()
        assert shares == pytest.approx({kind: share for kind, share in table.shares().items() if share})
    assert compared > 30


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_a_run_of_nothing_has_columns_and_no_line(name: Any, tmp_path: Path) -> None:
    write_run(tmp_path, [], [case("q1")], selected={"e3": ["q1"]}, not_run={"e3": ["q1"]})
    write_csv(tmp_path, tmp_path / "t.csv")
    write_parquet(tmp_path, tmp_path / "t.parquet")
    frame = rag_harness.load_results(tmp_path, name)
    assert frame.shape == (0, len(read_trials(tmp_path).columns))
    assert read_back(tmp_path / "t.csv") == []
    assert pyarrow.parquet.read_table(tmp_path / "t.parquet").num_rows == 0


def read_back(file: Path) -> list[dict[str, str]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream, strict=True))


_PARSED: dict[str, Callable[[str], Any]] = {
    "flag": lambda cell: {"true": True, "false": False}[cell],
    "number": float,
    "count": int,
    "names": lambda cell: [None if word == "-" else unquote(word) for word in cell.split()],
    "counts": lambda cell: [int(word) for word in cell.split()],
}


def parsed(line: dict[str, str], trials: TrialRecords) -> dict[str, Any]:
    """Return a record as its line of CSV says it, by the rules of docs/reference/trials-table.md."""
    unmarked = {name: cell[1:] if cell.startswith("'") else cell for name, cell in line.items()}
    return {
        name: _PARSED.get(kind, str)(unmarked[name]) if unmarked[name] else None
        for name, kind in trials.columns.items()
    }


def test_csv_says_all_that_records_say(output: Path, tmp_path: Path) -> None:
    write_csv(output, tmp_path / "t.csv")
    trials = read_trials(output)
    # An empty list is an empty cell.
    expected = [
        {name: is_kept(value) if isinstance(value, str) else value or None if value == [] else value
         for name, value in record.items()}
        for record in trials
    ]  # fmt: skip
    found = [parsed(line, trials) for line in read_back(tmp_path / "t.csv")]
    assert found == expected
    assert [line["answer"] for line in found[: len(ANSWERS)]] == [is_kept(text) for text in ANSWERS]


def test_names_of_documents_are_words_in_csv(tmp_path: Path) -> None:
    chunks = [make_chunk("a b.md#1"), make_chunk("a b.md#2"), make_chunk("50%.md#1"), make_chunk("-#1")]
    write_run(tmp_path, [make_row(retrieved_chunks=chunks, candidates=[])])
    write_csv(tmp_path, tmp_path / "t.csv")
    (line,) = read_back(tmp_path / "t.csv")
    assert line["retrieved"] == "a%20b.md - 50%25.md %2D"
    assert parsed(line, read_trials(tmp_path))["retrieved"] == ["a b.md", None, "50%.md", "-"]


def test_csv_is_rfc_4180_and_runs_nothing_in_a_spreadsheet(output: Path, tmp_path: Path) -> None:
    write_csv(output, tmp_path / "t.csv")
    content = (tmp_path / "t.csv").read_bytes()
    assert content.endswith(b"\r\n")
    assert not content.startswith(b"\xef\xbb\xbf")
    cells = [cell for line in read_back(tmp_path / "t.csv") for cell in line.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@", "\t", "\r", "＝"))]
    assert b"nan" not in content.lower().replace(b"na,", b"")


def test_negative_numbers_in_csv_stay_numbers(tmp_path: Path) -> None:
    write_run(tmp_path, [make_row(confidence=-0.5)])
    write_csv(tmp_path, tmp_path / "t.csv")
    assert read_back(tmp_path / "t.csv")[0]["confidence"] == "-0.5"


def test_parquet_keeps_every_value_and_its_type(output: Path, tmp_path: Path) -> None:
    write_parquet(output, tmp_path / "t.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet")
    assert table.to_pylist() == list(read_trials(output))
    assert str(table.schema.field("experiment").type).startswith("dictionary")
    assert str(table.schema.field("retrieved").type).startswith("list")
    assert (str(table.schema.field(F).type), str(table.schema.field("answerable").type)) == ("double", "bool")


def test_the_same_run_gives_the_same_bytes(output: Path, tmp_path: Path) -> None:
    for write in (write_csv, write_parquet):
        write(output, tmp_path / "one")
        write(output, tmp_path / "two")
        assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_a_frame_of_pandas_has_types_that_hold_what_is_missing(output: Path) -> None:
    frame = rag_harness.load_results(output)
    names = ("experiment", "answer", "answerable", F, "prompt_tokens", "retrieved")
    assert [str(frame[name].dtype) for name in names] == [
        "category", "string", "boolean", "Float64", "Int64", "object",
    ]  # fmt: skip
    assert list(frame["experiment"].cat.categories) == ["e3", GOLDEN]
    assert frame.loc[frame["query_id"] == "lost", "answer"].isna().all()
    assert frame.loc[1, "answer"] == NASTY
    both = pandas.concat([frame, frame])
    assert len(both) == 2 * len(frame)


def test_a_frame_of_polars_says_the_same(output: Path) -> None:
    frame = rag_harness.load_results(str(output), "polars")
    assert frame.to_dicts() == rag_harness.load_results(output, frame="records") == list(read_trials(output))
    assert dict(frame.schema)["experiment"] == polars.Categorical
    assert dict(frame.schema)["retrieved"] == polars.List(polars.String)


def test_polars_is_taken_where_pandas_is_not(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(rag_harness.load_results(output), polars.DataFrame)
    missing = "The frame 'pandas' needs the package 'pandas', which is not installed. Install it: pip install pandas. "
    with pytest.raises(PrerequisiteError, match=re.escape(f'{missing}frame="records" gives a list')):
        rag_harness.load_results(output, "pandas")
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(PrerequisiteError, match=r'neither is installed: pip install pandas\. frame="records" gives'):
        rag_harness.load_results(output)
    assert len(rag_harness.load_results(output, "records")) == len(ANSWERS) + 3


def test_without_pyarrow_parquet_says_what_brings_it(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PrerequisiteError, match=re.escape("pip install 'pytest-rag-harness[parquet]'")):
        write_parquet(output, output / "t.parquet")
    assert not (output / "t.parquet").exists()


def test_what_cannot_be_read_or_written_is_said(output: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"run\.json does not describe a run: there is no such file\."):
        rag_harness.load_results(tmp_path)
    with pytest.raises(DataError, match=r"run\.json is a file. Name the output folder of a run"):
        rag_harness.load_results(output / "run.json")
    with pytest.raises(SettingsError, match=r"Unknown frame 'panda'\. Did you mean 'pandas'"):
        rag_harness.load_results(output, "panda")  # type: ignore[arg-type]
    with pytest.raises(PrerequisiteError, match=f"Cannot write {output}: .*Name a file in a folder"):
        write_csv(output, output)


def test_a_failure_on_the_way_leaves_the_old_file(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "t.csv").write_text("old")
    (output / "cases" / "queries.jsonl").write_text("{}\n")
    with pytest.raises(DataError):
        write_csv(output, tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == "old"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["output", "t.csv"]


# The trials of a run, flat: all of the run, nothing else, each value where it belongs.


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
