"""``rag-harness report``: formats, names, and places that cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main
from rag_harness.core.errors import DataError, SettingsError
from rag_harness.page import check_place, format_of
from rag_harness.page.report import read_runs, write_report
from tests.unit.rows import make_row
from tests.unit.suite_tables import write_run


@pytest.fixture
def output(tmp_path: Path) -> Path:
    write_run(tmp_path / "out", [make_row()])
    return tmp_path / "out"


@pytest.mark.parametrize("ending", ["html", "md", "csv", "HTML"])
def test_the_file_s_ending_says_the_format(
    output: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / f"r.{ending}"
    assert main(["report", str(output), "-o", str(file)]) == 0
    start = {"html": "<!doctype html>", "md": "## ❔ NO VERDICT: ", "csv": "experiment,"}[ending.lower()]
    assert file.read_text().startswith(start)
    assert capsys.readouterr().out.startswith(f"{file}: ")


def test_a_format_that_is_asked_for_is_not_guessed(output: Path, tmp_path: Path) -> None:
    assert main(["report", str(output), "--format", "md", "-o", str(tmp_path / "comment.txt")]) == 0
    assert (tmp_path / "comment.txt").read_text().startswith("## ❔ NO VERDICT: ")


def test_without_names_it_is_the_report_of_output(
    output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output.rename("output")
    assert main(["report"]) == 0
    assert Path("report.html").is_file()


def test_the_same_run_gives_the_same_bytes(output: Path, tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        write_report([output], tmp_path / name, "html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_an_ending_that_says_nothing_is_refused_with_those_that_do() -> None:
    with pytest.raises(SettingsError, match=r"r\.pdf: no format ends like that\. Use one of \.html, \.md"):
        format_of(Path("r.pdf"))


def test_a_folder_is_no_file(output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output), "--format", "html", "-o", str(tmp_path)]) == CANNOT_RUN
    assert f"{tmp_path} is a folder. Name a file in it: {tmp_path / 'report.html'}." in capsys.readouterr().err
    assert main(["report", str(output), "-o", str(tmp_path)]) == CANNOT_RUN
    assert f"{tmp_path} is a folder. Name a file in it" in capsys.readouterr().err
    (tmp_path / "x.html").mkdir()
    with pytest.raises(SettingsError, match="is a folder"):
        check_place(tmp_path / "x.html")


def test_a_place_that_cannot_be_written_is_said(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output), "-o", "/proc/report.html"]) == CANNOT_RUN
    assert "/proc/report.html cannot be written: " in capsys.readouterr().err


def test_a_folder_without_a_run_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path), "-o", str(tmp_path / "r.html")]) == CANNOT_RUN
    assert "does not describe a run: there is no such file. Run pytest" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()


def test_a_file_is_no_folder_of_a_run(output: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(output / "run.json"), "-o", str(output / "r.html")]) == CANNOT_RUN
    assert f"run.json is a file. Name the output folder of a run: {output}." in capsys.readouterr().err


def test_a_table_is_of_one_run(output: Path, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="of one run, and 2 are named"):
        write_report([output, output], tmp_path / "r.csv", "csv")


def test_runs_are_named_by_as_much_of_their_path_as_tells_them_apart(tmp_path: Path) -> None:
    for name in ("monday/output", "tuesday/output", "other"):
        write_run(tmp_path / name, [make_row()])
    assert [run.name for run in read_runs([tmp_path / "other", tmp_path / "monday/output"])] == ["other", "output"]
    found = read_runs([tmp_path / "monday/output", tmp_path / "tuesday/output"])
    assert [run.name for run in found] == ["monday/output", "tuesday/output"]
    with pytest.raises(DataError, match="named twice"):
        read_runs([tmp_path / "other", tmp_path / "other"])


def test_a_lone_surrogate_is_written_as_the_character_that_says_so(tmp_path: Path) -> None:
    write_run(tmp_path, [make_row()])
    file = tmp_path / "cases" / "queries.jsonl"
    file.write_text(file.read_text().replace("30 days", "30 \\ud800 days"))
    for wanted in ("html", "md"):
        write_report([tmp_path], tmp_path / "r", wanted)
        assert (tmp_path / "r").read_bytes().decode("utf-8")
