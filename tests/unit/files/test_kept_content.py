"""Files of the cache that are trusted: whole, or as good as none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.cache import leave_newest, read_kept, write_kept

VALUE = {"scores": [0.5, None, "“quoted” €"], "rows": {"e3+twice": "{}\n" * 40}}


def test_what_was_written_is_read(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "a.kept"
    write_kept(file, VALUE)
    assert read_kept(file) == VALUE


def test_a_file_that_is_not_there_is_none(tmp_path: Path) -> None:
    assert read_kept(tmp_path / "a.kept") is None


@given(cut=st.integers(0, 150))
def test_a_torn_file_is_none(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    file = tmp_path_factory.mktemp("kept") / "a.kept"
    write_kept(file, VALUE)
    whole = file.read_bytes()
    file.write_bytes(whole[: min(cut, len(whole) - 1)])
    assert read_kept(file) is None


@given(place=st.integers(0, 90), bit=st.integers(0, 7))
def test_a_damaged_file_is_none(tmp_path_factory: pytest.TempPathFactory, place: int, bit: int) -> None:
    file = tmp_path_factory.mktemp("kept") / "a.kept"
    write_kept(file, VALUE)
    content = bytearray(file.read_bytes())
    content[place % len(content)] ^= 1 << bit
    file.write_bytes(content)
    assert read_kept(file) is None


@pytest.mark.parametrize("foreign", [b"", b"{}", b"\x00" * 400, '{"value": 1}'.encode("utf-16")])
def test_a_file_of_somebody_else_is_none(tmp_path: Path, foreign: bytes) -> None:
    file = tmp_path / "a.kept"
    file.write_bytes(foreign)
    assert read_kept(file) is None


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "no folder").write_text("a file")
    write_kept(tmp_path / "no folder" / "a.kept", VALUE)
    leave_newest(tmp_path / "no folder", 1)


def test_the_last_used_stay(tmp_path: Path) -> None:
    for number in range(4):
        write_kept(tmp_path / f"{number}.kept", number)
        os.utime(tmp_path / f"{number}.kept", (number, number))
    read_kept(tmp_path / "0.kept")  # used now
    leave_newest(tmp_path, 2)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0.kept", "3.kept"]
