"""Scores, verdicts and trials as CSV and Parquet: equal to the tables of the run, and the same the second time."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from rag_harness.page.exports.scored_run import read_scored_run
from tests.unit.page.exports.conftest import GATES, Exporting, write_summary


def rows_of(file: Path) -> list[dict[str, Any]]:
    with file.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def test_scores_are_those_of_the_tables(exporting: Exporting, output: Path, tmp_path: Path) -> None:
    status, said = exporting("csv", "-o", str(tmp_path / "out"))
    assert status == 0
    assert "scores.csv: " in said
    table = read_scored_run(output).trials.tables["e3"]
    compared = 0
    for row in rows_of(tmp_path / "out" / "scores.csv"):
        if row["experiment"] != "e3":
            continue
        key, _, kind = row["slice"].partition("=")
        where = {key: kind} if key else {}
        values = list(table.values(row["measure"], where).values())
        assert float(row["value"]) == pytest.approx(sum(values) / len(values))
        assert int(row["n"]) == len(values)
        between = table.interval(row["measure"], where)
        assert (row["low"], row["high"]) == (("", "") if between is None else tuple(map(repr, between)))
        compared += 1
    assert compared > 20


def test_verdicts_stand_beside_them(exporting: Exporting, tmp_path: Path) -> None:
    exporting("csv", "-o", str(tmp_path / "out"))
    rows = rows_of(tmp_path / "out" / "gates.csv")
    assert [(row["experiment"], row["gate"], row["state"], row["low"], row["high"]) for row in rows] == [
        ("e3", "e3: recall@5 >= 0.4", "passed", "0.2", ""),
        ("e3", "e3[topic=t1]: token_f1 >= 0.9", "FAILED", "", ""),
        ("golden", "golden: recall@5 >= 0.9", "passed", "", ""),
    ]


def test_parquet_says_the_same(exporting: Exporting, tmp_path: Path) -> None:
    exporting("csv", "-o", str(tmp_path / "a"))
    exporting("parquet", "-o", str(tmp_path / "b"))
    for name in ("scores", "gates", "trials"):
        lines = pyarrow.parquet.read_table(tmp_path / "b" / f"{name}.parquet").to_pylist()
        rows = rows_of(tmp_path / "a" / f"{name}.csv")
        assert len(lines) == len(rows) > 0
        assert list(lines[0]) == list(rows[0])
    scores = pyarrow.parquet.read_table(tmp_path / "b" / "scores.parquet").to_pylist()
    assert [repr(line["value"]) for line in scores] == [row["value"] for row in rows_of(tmp_path / "a" / "scores.csv")]


@pytest.mark.parametrize("target", ["csv", "parquet"])
def test_a_second_export_changes_nothing(exporting: Exporting, tmp_path: Path, target: str) -> None:
    exporting(target, "-o", str(tmp_path / "out"))
    before = {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()}
    exporting(target, "-o", str(tmp_path / "out"))
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before


def test_the_identity_is_that_of_scores_and_verdicts(output: Path) -> None:
    first = read_scored_run(output).identity
    assert read_scored_run(output).identity == first
    write_summary(output, GATES[:1])
    assert read_scored_run(output).identity != first


def test_what_cannot_be_exported_is_said(exporting: Exporting, output: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert "is a file. Name a folder" in exporting("csv", "-o", str(tmp_path / "file"))[1]
    write_summary(output, GATES, run="2020-01-01T00:00:00+00:00")
    status, said = exporting("csv")
    assert (status, "is of another run than run.json" in said) == (2, True)
    (output / "summary.json").unlink()
    assert "which has the verdicts: the run did not come to its end" in exporting("csv")[1]
    (output / "run.json").unlink()
    assert exporting("csv")[0] == 2


@pytest.mark.parametrize("target", ["promptfoo", "wandb"])
def test_a_removed_target_names_what_is_used_in_its_place(
    exporting: Exporting, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    with pytest.raises(SystemExit):
        exporting(target)
    assert "use --to csv" in capsys.readouterr().err
