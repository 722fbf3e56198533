"""A folder that holds no run is told with those beside it that hold one, and never as advice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_in(folder: Path, age: int = 0) -> None:
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    os.utime(folder / "run.json", (1_000_000 - age, 1_000_000 - age))


def said(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    assert main([*command]) == CANNOT_RUN
    return capsys.readouterr().err.strip()


def test_a_misspelt_folder_is_told_with_those_that_hold_a_run(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run_in(here / "output", age=9)
    run_in(here / "nightly")
    (here / "outputs").mkdir()
    held = "Folders here that hold a run: nightly, output."
    assert said(capsys, "report", "outptu") == f"No folder outptu. Did you mean 'output'? {held}"
    assert said(capsys, "compare", "outptu", "output").endswith(f"Did you mean 'output'? {held}")
    there = "outputs/run.json does not describe a run: there is no such file."
    assert said(capsys, "report", "outputs") == f"{there} Run pytest with --rag-output=outputs first."
    assert said(capsys, "report", ".").endswith(held)


def test_without_any_run_the_next_step_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    begin = "No folder here holds a run: pytest writes one into output, or where --rag-output says."
    assert said(capsys, "report", "output") == f"No folder output. {begin}"
    (here / "output").mkdir()
    assert said(capsys, "report", "output").endswith("Run pytest with --rag-output=output first.")


def test_of_many_folders_a_few_are_named(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for n in range(9):
        run_in(here / f"o{n}", age=n)
    assert said(capsys, "report", "gone").endswith("hold a run: o0, o1, o2, o3, o4, and 4 more.")
