"""Files in two steps: what was begun is whole or nothing, whatever happens between them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_harness.core.files import begin_atomically, begun_file, finish_begun

CONTENT = b"line\n" * 100


def whole(file: Path) -> bool:
    return file.read_bytes() == CONTENT


def test_a_reader_sees_nothing_until_it_is_in_place(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.yaml"
    finish = begin_atomically(file, CONTENT)
    assert not file.exists()
    finish()
    assert whole(file)
    assert [each.name for each in file.parent.iterdir()] == ["a.yaml"]


def test_what_a_kill_has_left_is_put_in_place_if_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    assert not finish_begun(file, whole)
    begin_atomically(file, CONTENT)
    assert finish_begun(file, whole)
    assert whole(file)


@pytest.mark.parametrize("size", [0, 1, len(CONTENT) - 1])
def test_a_part_is_no_file_and_in_nobodys_way(tmp_path: Path, size: int) -> None:
    file = tmp_path / "a.yaml"
    begun_file(file).write_bytes(CONTENT[:size])
    assert not finish_begun(file, whole)
    assert not file.exists()
    begin_atomically(file, CONTENT)()
    assert whole(file)
    assert not begun_file(file).exists()


def test_several_write_the_same_at_once(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    first, second = begin_atomically(file, CONTENT), begin_atomically(file, CONTENT)
    assert finish_begun(file, whole)  # a third one asks for it
    second()
    first()
    assert whole(file)
    assert [each.name for each in tmp_path.iterdir()] == ["a.yaml"]


@pytest.mark.parametrize("step", ["write", "fsync", "replace"])
def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    def full(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="no room"):
        begin_atomically(tmp_path / "a.yaml", CONTENT)()
    assert list(tmp_path.iterdir()) == []
