"""The cache: what is in it, when it was used last, and what goes."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
import zlib
from hashlib import blake2b
from pathlib import Path

import pytest
from filelock import FileLock
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.__main__ import main
from rag_harness.core import cache as core_cache
from rag_harness.core.cache import (
    CacheEntry,
    entries_of,
    leave_newest,
    naming,
    note_use,
    read_kept,
    reserve,
    stale,
    unwritable,
    used_bytes,
    write_kept,
)
from rag_harness.core.process_lock import LockHeldError, process_lock
from rag_harness.runs.judging import _score

# The cache: what is in it, when it was used last, and what goes.

NOW = 1_000_000.0
DAY = 86_400.0


def entry(cache: Path, kind: str, name: str, days: float, size: int = 4096) -> Path:
    folder = cache / kind / name
    folder.mkdir(parents=True)
    (folder / "one.safetensors").write_bytes(b"x" * size)
    when = time.time() - days * DAY
    os.utime(folder / "one.safetensors", (when, when))
    os.utime(folder, (when, when))
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    entry(tmp_path, "vectors", "mini", 2)
    entry(tmp_path, "tokens", "mini", 40, 100_000)
    entry(tmp_path, "indexes", "shard", 90)
    (tmp_path / "package.json").write_text("{}")
    return tmp_path


def test_entries_come_with_the_least_used_first(cache: Path) -> None:
    found = entries_of(cache)
    assert [(each.kind, each.path.name) for each in found] == [
        ("indexes", "shard"),
        ("tokens", "mini"),
        ("vectors", "mini"),
    ]
    assert found[1].bytes >= 100_000


def test_what_is_opened_was_used_now(cache: Path) -> None:
    note_use(cache / "indexes" / "shard")
    assert entries_of(cache)[-1].kind == "indexes"
    note_use(cache / "nothing")  # a cache that is not there, or may not be written, is no error


def made(kind: str, days: float, size: int) -> CacheEntry:
    return CacheEntry(kind, Path(kind), size, NOW - days * DAY)


def test_old_entries_go_and_then_the_least_used_until_enough_is_left() -> None:
    entries = [made("a", 50, 10), made("b", 20, 30), made("c", 5, 40), made("d", 0.01, 100)]
    assert [each.kind for each in stale(entries, NOW, 30 * DAY, float("inf"))] == ["a"]
    assert [each.kind for each in stale(entries, NOW, 30 * DAY, 150)] == ["a", "b"]
    # What may be in use stays, however small the cache is to be.
    assert [each.kind for each in stale(entries, NOW, 30 * DAY, 0)] == ["a", "b", "c"]


def test_the_command_removes_what_is_old_and_nothing_else(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (cache / "mine").mkdir()
    assert main(["cache", "prune", str(cache), "--dry-run"]) == 0
    assert (cache / "tokens" / "mini").exists()
    assert "would go: tokens" in capsys.readouterr().out
    assert main(["cache", "prune", str(cache)]) == 0
    assert sorted(each.name for each in cache.iterdir()) == [
        *("building.lock", "indexes", "mine", "package.json", "tokens", "vectors")
    ]
    assert [each.kind for each in entries_of(cache)] == ["vectors"]
    assert list((cache / "tokens").iterdir()) == []
    assert "2 of 3 entries are removed" in capsys.readouterr().out


def test_the_status_says_size_and_use(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "status", str(cache)]) == 0
    said = capsys.readouterr().out
    assert "tokens: vectors of words for the reranker and the judge, " in said
    assert said.splitlines()[0].startswith("indexes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--older", "soon"], "expected a duration"),
        (["--most", "2"], "expected a size"),
    ],
)
def test_what_cannot_be_read_removes_nothing(
    cache: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cache", "prune", str(cache), *arguments]) == 2
    assert said in capsys.readouterr().err
    assert len(entries_of(cache)) == 3


def test_a_folder_that_is_no_cache_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "photos" / "summer").mkdir(parents=True)
    assert main(["cache", "prune", str(tmp_path)]) == 2
    assert "is not a cache of ours" in capsys.readouterr().err
    assert main(["cache", "status", str(tmp_path / "gone")]) == 2
    assert (tmp_path / "photos" / "summer").exists()


def test_a_link_out_of_the_cache_is_never_followed(cache: Path, tmp_path: Path) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (cache / "vectors" / "link").symlink_to(outside, target_is_directory=True)
    assert [each.path.name for each in entries_of(cache) if each.kind == "vectors"] == ["mini"]


def test_nothing_goes_while_a_run_builds(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with FileLock(cache / "building.lock"):
        assert main(["cache", "prune", str(cache)]) == 2
    assert "A run is building" in capsys.readouterr().err
    assert len(entries_of(cache)) == 3


# Files of the cache that are trusted: whole, or as good as none.

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


# Room on the disk, reserved for files that somebody else makes, renames and removes meanwhile.


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


# What is said of a disk that takes no more.


@pytest.mark.parametrize(
    ("number", "to_do"),
    [
        (errno.ENOSPC, "Make room"),
        (errno.EDQUOT, "quota"),
        (errno.EROFS, "mount it for writing"),
        (errno.EIO, "system's log"),
        (errno.EACCES, "can be written"),
    ],
)
def test_one_line_names_file_remedy_and_what_is_safe(number: int, to_do: str) -> None:
    with pytest.raises(OSError, match=os.strerror(number)) as failed, naming(Path("output/e1.jsonl")):
        raise OSError(number, os.strerror(number))
    said = unwritable(failed.value, Path("output/journal"))
    assert said.startswith(f"output/e1.jsonl cannot be written: {os.strerror(number)}. ")
    assert to_do in said
    assert "kept in output/journal" in said
    assert "\n" not in said


# Files of the cache that somebody has made: each is as good as none, or says what any score may say.

POISON = {
    "lists in lists": b"[" * 100_000,
    "objects in objects": b'{"a":' * 100_000,
    "a number of 5,000 digits": b"1" * 5_000,
    "no UTF-8": b"\xff",
    "nothing": b"",
}
NO_SCORE = [10**400, "1e999", "NaN", None, [], {}, "a number"]


def poisoned(file: Path, content: bytes) -> Path:
    packed = zlib.compress(content)
    file.write_bytes(blake2b(packed, digest_size=16).digest() + packed)
    return file


@pytest.mark.parametrize("content", POISON.values(), ids=POISON)
def test_what_cannot_be_read_is_as_good_as_none(tmp_path: Path, content: bytes) -> None:
    assert read_kept(poisoned(tmp_path / "a.kept", content)) is None


def test_a_small_file_that_holds_gigabytes_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_cache, "_LARGEST", 1_000)
    assert read_kept(poisoned(tmp_path / "a.kept", b'"' + b"a" * 10_000 + b'"')) is None
    write_kept(tmp_path / "b.kept", {"a": "b" * 900})
    assert read_kept(tmp_path / "b.kept") == {"a": "b" * 900}


@pytest.mark.parametrize("value", NO_SCORE)
def test_what_is_no_number_is_no_score(value: object) -> None:
    found = _score([value, "", {}, False])
    assert found is None or (value is None and found.value is None)
    assert _score(value) is None


# A lock that says who holds it, and that no process leaves behind.

HOLDER = """
import sys
from pathlib import Path
from rag_harness.core.process_lock import process_lock
with process_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_second_is_told_who_holds_it_and_the_holder_leaves_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    for _ in range(2):
        with (
            process_lock(lock),
            pytest.raises(LockHeldError, match=rf"^process {os.getpid()} on \S+$"),
            process_lock(lock),
        ):
            pytest.fail("held by two")
    assert not list(tmp_path.iterdir())


def test_what_is_raised_inside_lets_it_go(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), process_lock(tmp_path / "lock"):
        raise KeyboardInterrupt
    assert not list(tmp_path.iterdir())


def test_a_holder_that_is_killed_holds_nothing(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    command = [sys.executable, "-c", HOLDER, str(lock)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(LockHeldError, match=f"process {holder.pid} on"), process_lock(lock):
            pytest.fail("held by two")
        holder.kill()
        holder.wait(timeout=10)
        assert lock.exists()
        with process_lock(lock):
            pass
    assert not lock.exists()
