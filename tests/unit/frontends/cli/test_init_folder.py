"""``rag-harness init`` and a folder of documents that is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_harness.__main__ import CANNOT_RUN, main


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_docs").mkdir()
    (tmp_path / "my_docs" / "trailers.md").write_text("# Trailers\n\nTrailers are lent for 2 days.\n")
    return tmp_path


def test_a_folder_that_is_not_there_is_said_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init", "--kb", "mydocs"]) == CANNOT_RUN
    assert capsys.readouterr().err.startswith("No folder mydocs. Did you mean 'my_docs'? Name the folder of your ")


def test_a_file_is_no_folder(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "notes.md").write_text("# Notes\n")
    assert main(["init", "--kb", "notes.md"]) == CANNOT_RUN
    assert capsys.readouterr().err.startswith("notes.md is a file, and no folder of documents. Name the folder of your")


def test_the_folder_of_the_tutorial_is_found_by_its_name(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert "found  1 document in my_docs" in capsys.readouterr().out
    assert "rag_kb_dir = my_docs" in (here / "pytest.ini").read_text()
