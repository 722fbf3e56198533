"""Room on the disk, reserved for files that somebody else makes, renames and removes meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rag_harness.core.cache import reserve, used_bytes


def _with_hole(file: Path, size: int = 1 << 20) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        stream.truncate(size)
    return file


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve")
def test_files_that_are_renamed_while_they_are_looked_at_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The write-ahead log of Qdrant Edge prepares ``tmp-open-2`` in a thread, and renames it when it is whole."""
    wal, vectors = _with_hole(tmp_path / "wal" / "tmp-open-2"), _with_hole(tmp_path / "vectors.mmap")
    inner = Path.stat
    renamed: list[Path] = []

    def stat(path: Path, **how: bool) -> os.stat_result:
        if path == wal and not renamed:
            renamed.append(wal.rename(wal.with_name("open-2")))
        return inner(path, **how)

    monkeypatch.setattr(Path, "stat", stat)
    reserve(tmp_path, 1 << 16)
    assert vectors.stat().st_blocks * 512 >= 1 << 16
    assert renamed
    assert used_bytes(tmp_path) >= 1 << 16


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="this system cannot reserve")
def test_a_file_that_goes_before_it_is_opened_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, inner = _with_hole(tmp_path / "tmp-open-2"), os.open

    def opened(path: Path, flags: int) -> int:
        file.unlink()
        return inner(path, flags)

    monkeypatch.setattr(os, "open", opened)
    reserve(tmp_path, 1 << 16)
    assert not file.exists()
