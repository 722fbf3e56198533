"""What is remembered of files is believed only where nothing can have changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from time import time_ns

import pytest

from rag_harness.registry.identity import remembered as module
from rag_harness.registry.identity.python_source import PythonSource, read_source
from rag_harness.registry.identity.remembered import REMEMBERED_FILE, Remembered

SECOND = 10**9


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What was parsed."""
    parsed: list[bytes] = []

    def noted(content: bytes) -> PythonSource:
        parsed.append(content)
        return read_source(content)

    monkeypatch.setattr(module, "read_source", noted)
    return parsed


def aged(file: Path, text: str) -> Path:
    """Write a file of an hour ago."""
    file.write_text(text)
    hour_ago = time_ns() - 3600 * SECOND
    os.utime(file, ns=(hour_ago, hour_ago))
    return file


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it be an hour later than files say: the time of a file's entry cannot be set."""
    monkeypatch.setattr(module, "time_ns", lambda: time_ns() + 3600 * SECOND)


def digest(folder: Path | None, file: Path) -> str:
    """The digest of a file in a process of its own."""
    remembered = Remembered(folder)
    found = remembered.source(str(file))
    remembered.keep()
    assert found is not None
    return found.digest


def test_a_file_that_has_not_changed_is_parsed_once(tmp_path: Path, reads: list[bytes], later: None) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    assert digest(tmp_path, file) == digest(tmp_path, file)
    assert len(reads) == 1


def test_a_file_with_another_time_and_the_same_content_is_not_parsed_again(
    tmp_path: Path, reads: list[bytes], later: None
) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    before = digest(tmp_path, file)
    os.utime(file)
    assert digest(tmp_path, file) == before
    assert len(reads) == 1


def test_an_edit_is_seen_also_where_size_and_time_are_put_back(tmp_path: Path, later: None) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    stat = file.stat()
    before = digest(tmp_path, file)
    file.write_text("x = 2\n")
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    assert digest(tmp_path, file) != before


def test_a_file_that_was_written_just_now_is_not_known_by_its_times(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    digest(tmp_path, file)
    (said,) = json.loads((tmp_path / REMEMBERED_FILE).read_text())["files"].values()
    assert said[0] is None


@pytest.mark.parametrize(
    "damage",
    [
        b"", b"{", b"[]", b"null", b"{}", b'{"files": []}', b'{"read_by": "x", "files": {}}', b"\xff",
        b'{"read_by": "READER", "files": []}', b'{"read_by": "READER", "files": {"FILE": 5}}',
        b'{"read_by": "READER", "files": {"FILE": [[1, 2, 3], "x", ["y"]]}}',
        b'{"read_by": "READER", "files": {"FILE": ["LOOKS", "x", 5]}}',
    ],
)  # fmt: skip
def test_a_damaged_memory_is_none(tmp_path: Path, damage: bytes) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    before = digest(None, file)
    reader = module._reader().encode()
    (tmp_path / REMEMBERED_FILE).write_bytes(damage.replace(b"READER", reader).replace(b"FILE", str(file).encode()))
    assert digest(tmp_path, file) == before


def test_what_another_reader_found_does_not_count(
    tmp_path: Path, reads: list[bytes], later: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    digest(tmp_path, file)
    monkeypatch.setattr(module, "_reader", lambda: "another")
    digest(tmp_path, file)
    assert len(reads) == 2


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    (tmp_path / "taken").write_text("a file")
    assert digest(tmp_path / "taken" / "below", file) == digest(None, file)


def test_a_file_that_is_gone_is_forgotten(tmp_path: Path) -> None:
    one, other = aged(tmp_path / "a.py", "x = 1\n"), aged(tmp_path / "b.py", "x = 2\n")
    digest(tmp_path, one)
    one.unlink()
    digest(tmp_path, other)
    assert [*json.loads((tmp_path / REMEMBERED_FILE).read_text())["files"]] == [str(other)]
    assert Remembered(tmp_path).source(str(one)) is None


def test_what_is_not_new_is_not_written(tmp_path: Path, later: None) -> None:
    file = aged(tmp_path / "a.py", "x = 1\n")
    digest(tmp_path, file)
    written = (tmp_path / REMEMBERED_FILE).stat().st_mtime_ns
    digest(tmp_path, file)
    assert (tmp_path / REMEMBERED_FILE).stat().st_mtime_ns == written
