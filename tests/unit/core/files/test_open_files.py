"""What Windows refuses to do with open files, told by planted refusals: this is no Windows."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_harness.core import files
from rag_harness.core.files import write_atomically
from rag_harness.core.process_lock import LockHeldError, process_lock
from rag_harness.runs.journal import remove


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waited: list[float] = []
    monkeypatch.setattr(files, "sleep", waited.append)
    return waited


@pytest.mark.parametrize("refusals", [0, 1, 5])
def test_a_file_that_is_read_meanwhile_is_replaced_a_moment_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float], refusals: int
) -> None:
    left, replace = [None] * refusals, os.replace

    def refusing(made: str, file: Path) -> None:
        if left:
            left.pop()
            raise PermissionError(13, "The process cannot access the file", str(file))
        replace(made, file)

    monkeypatch.setattr("os.replace", refusing)
    write_atomically(tmp_path / "kept.json", b"new")
    assert (tmp_path / "kept.json").read_bytes() == b"new"
    assert waits == [0.01 * 2**n for n in range(refusals)]
    assert len(list(tmp_path.iterdir())) == 1


def test_a_file_that_stays_open_is_an_error_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    def refusing(made: str, file: Path) -> None:
        raise PermissionError(13, "The process cannot access the file", str(file))

    monkeypatch.setattr("os.replace", refusing)
    with pytest.raises(PermissionError):
        write_atomically(tmp_path / "kept.json", b"new")
    assert not list(tmp_path.iterdir())
    assert sum(waits) < 0.4


def test_another_error_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError):
        write_atomically(tmp_path / "folder", b"new")
    assert not waits


def test_a_journal_whose_lock_is_open_is_removed_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, unlink = tmp_path / "run.jsonl", Path.unlink
    for ending in (".jsonl", ".lock"):
        file.with_suffix(ending).touch()

    def refusing(path: Path, missing_ok: bool = False) -> None:
        if path.suffix == ".lock":
            raise PermissionError(13, "The process cannot access the file", str(path))
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", refusing)
    remove(file)
    assert [each.name for each in tmp_path.iterdir()] == ["run.lock"]


def test_a_lock_that_cannot_be_written_to_is_held_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "another process has locked a portion of the file", str(path))

    monkeypatch.setattr(Path, "write_text", refusing)
    with (
        process_lock(tmp_path / "lock"),
        pytest.raises(LockHeldError, match=r"^another process$"),
        process_lock(tmp_path / "lock"),
    ):
        pytest.fail("held by two")


def test_lines_are_appended_as_they_are() -> None:
    assert files.APPENDING & os.O_APPEND
    assert files.APPENDING & getattr(os, "O_BINARY", 0) == getattr(os, "O_BINARY", 0)
