"""Stores of arrays, and what `.ci/record` makes of them."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from rag_harness.core.errors import DataError, RecordingWriteError
from rag_harness.core.files import write_atomically
from rag_harness.core.settings import Settings
from rag_harness.models import array_store as module
from rag_harness.models.array_store import ArrayStore, StoreRoom, key_of

Array = npt.NDArray[Any]
entries = st.dictionaries(
    st.text(max_size=8).map(key_of),
    arrays.arrays(np.float32, st.tuples(st.integers(1, 3), st.just(3)), elements=st.floats(width=32, allow_nan=False)),
    max_size=6,
)


def row(value: float) -> Array:
    return np.full((1, 3), value, np.float32)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@settings(max_examples=25)
@given(st.lists(entries, max_size=3))
def test_round_trip(tmp_path_factory: pytest.TempPathFactory, batches: list[dict[bytes, Array]]) -> None:
    folder = tmp_path_factory.mktemp("store")
    writer, expected = ArrayStore([], folder), dict[bytes, Array]()
    for batch in batches:
        writer.put(batch)
        expected = batch | expected  # the first one stays
        writer.flush()
    for store in (writer, ArrayStore([folder])):
        assert len(store) == len(expected)
        for key, found in zip(expected, store.get(list(expected)), strict=True):
            assert found is not None
            np.testing.assert_array_equal(found, expected[key])
    assert writer.get([key_of("never put", "")]) == [None]


@given(st.lists(st.text(max_size=3), max_size=3), st.lists(st.text(max_size=3), max_size=3))
def test_keys_tell_parts_apart(one: list[str], other: list[str]) -> None:
    assert (key_of(*one) == key_of(*other)) == (one == other)


def test_key_of_half_a_character() -> None:
    assert len(key_of("\ud83d")) == module.KEY_BYTES


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_dtype_is_kept(tmp_path: Path, kind: type) -> None:
    ArrayStore([], tmp_path).put({})
    store = ArrayStore([], tmp_path)
    store.put({key_of("a"): np.array([[0.1, 2]], kind), key_of("b"): np.array([1, 2], kind)})
    store.flush()
    found = ArrayStore([tmp_path]).get([key_of("a"), key_of("b")])
    assert [each.dtype for each in found if each is not None] == [kind, kind]
    assert [each.shape for each in found if each is not None] == [(1, 2), (1, 2)]


def test_four_writers_lose_nothing(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.unit.models.recording.written_by_process", str(tmp_path)]
    writers = [subprocess.Popen([*command, str(n)], cwd=Path(__file__).parents[4]) for n in range(4)]
    assert [each.wait(60) for each in writers] == [0] * 4
    store = ArrayStore([tmp_path])
    own = [(key_of(f"own {writer} {n}"), writer) for writer in range(4) for n in range(40)]
    shared = [(key_of(f"shared {n}"), n) for n in range(40)]
    for key, value in own + shared:
        np.testing.assert_array_equal(store.get([key])[0], row(value))
    assert len(store) == 200
    assert all(file.suffix == ".safetensors" for file in files(tmp_path))


def test_threads_lose_nothing(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)

    def put(thread: int) -> None:
        for n in range(100):
            store.put({key_of(f"{thread} {n}"): row(n)})
            if n % 10 == thread:
                store.flush()

    threads = [Thread(target=put, args=(n,)) for n in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    store.flush()
    assert len(ArrayStore([tmp_path])) == 400


def test_what_is_there_is_not_rewritten(tmp_path: Path) -> None:
    first, late = ArrayStore([], tmp_path), ArrayStore([], tmp_path)
    late.put({key_of("a"): row(2), key_of("b"): row(3)})  # before it could see the first one's
    first.put({key_of("a"): row(1)})
    first.flush()
    (file,) = files(tmp_path)
    before = file.stat()
    late.flush()
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    for store in (first, late, ArrayStore([tmp_path])):
        np.testing.assert_array_equal(store.get([key_of("a")])[0], row(1))
        np.testing.assert_array_equal(store.get([key_of("b")])[0], row(3))
    late.put({key_of("a"): row(4)})
    late.flush()
    assert len(files(tmp_path)) == 2


def test_same_keys_again_leave_the_file(tmp_path: Path) -> None:
    first, second = ArrayStore([], tmp_path), ArrayStore([], tmp_path)
    first.put({key_of("a"): row(1)})
    second.put({key_of("a"): row(2)})  # the same keys, so the same file name
    first.flush()
    inode = files(tmp_path)[0].stat().st_ino
    second.flush()
    assert [file.stat().st_ino for file in files(tmp_path)] == [inode]
    np.testing.assert_array_equal(second.get([key_of("a")])[0], row(1))


def test_waiting_entries_are_not_replaced(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    store.put({key_of("a"): row(1)})
    store.put({key_of("a"): row(2)})
    np.testing.assert_array_equal(store.get([key_of("a")])[0], row(1))


def test_enough_entries_are_written_by_themselves(tmp_path: Path) -> None:
    store = ArrayStore([], tmp_path)
    store.put({key_of(str(n)): row(n) for n in range(module._FLUSH_AT - 1)})
    assert not files(tmp_path)
    store.put({key_of("last"): row(0)})
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("keep", [0, 4, 60, -1])
def test_truncated_segment_names_its_file(tmp_path: Path, keep: int) -> None:
    store = ArrayStore([], tmp_path)
    store.put({key_of("a"): row(1)})
    store.flush()
    (file,) = files(tmp_path)
    file.write_bytes(file.read_bytes()[:keep])
    with pytest.raises(DataError, match=r"cut short or damaged\. Delete it") as caught:
        ArrayStore([tmp_path]).get([key_of("a")])
    assert str(file) in str(caught.value)


def test_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "file"
    write_atomically(target, b"old")

    def fail(*args: object) -> None:
        raise OSError("disk full")

    for step in ("fsync", "replace", "chmod"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="disk full"):
                write_atomically(target, b"new")
        assert files(tmp_path) == [target]
        assert target.read_bytes() == b"old"


def test_entries_survive_a_failed_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ArrayStore([], tmp_path)
    store.put({key_of("a"): row(1)})
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(RecordingWriteError, match="disk full"):
            store.flush()
    store.flush()
    assert len(ArrayStore([tmp_path])) == 1


def test_written_files_are_readable_by_others(tmp_path: Path) -> None:
    write_atomically(tmp_path / "deep" / "file", b"x")
    assert (tmp_path / "deep" / "file").stat().st_mode & 0o777 == 0o644


def test_read_only_store_writes_nothing(tmp_path: Path) -> None:
    store = ArrayStore([tmp_path])
    store.put({key_of("a"): row(1)})
    store.flush()
    np.testing.assert_array_equal(store.get([key_of("a")])[0], row(1))
    assert not files(tmp_path)


def test_first_folder_wins(tmp_path: Path) -> None:
    for n, name in enumerate(("recorded", "cache")):
        store = ArrayStore([], tmp_path / name)
        store.put({key_of("a"): row(n)})
        store.flush()
    both = ArrayStore([tmp_path / "recorded", tmp_path / "cache"])
    np.testing.assert_array_equal(both.get([key_of("a")])[0], row(0))


@pytest.mark.parametrize(
    ("mode", "kind", "written"),
    [
        ("auto", "vectors", "cache"),
        ("live", "vectors", "cache"),
        ("record", "vectors", "cassettes/p"),
        ("record", "tokens", "cache"),
        ("replay", "vectors", None),
    ],
)
def test_where_a_mode_writes(tmp_path: Path, mode: Any, kind: str, written: str | None) -> None:
    known = Settings(mode=mode, profile="p", cache_dir="cache", rootdir=str(tmp_path))
    room = StoreRoom(known)
    room.open(kind, "org/model", "1").put({key_of("a"): row(1)})
    room.flush()
    found = [file.relative_to(tmp_path).parent.as_posix() for file in tmp_path.rglob("*.safetensors")]
    assert found == ([f"{written}/{kind}/org--model@1"] if written else [])
    assert room.open(kind, "org/model", "1") is room.open(kind, "org/model", "1")
    assert room.open(kind, "org/model", "2") is not room.open(kind, "org/model", "1")


@pytest.mark.parametrize(("mode", "found"), [("auto", [2.0, 3.0]), ("replay", [2.0, 3.0]), ("live", [2.0, None])])
def test_what_a_mode_reads(tmp_path: Path, mode: Any, found: list[float | None]) -> None:
    known = Settings(profile="p", cache_dir="cache", rootdir=str(tmp_path))
    wrote: list[tuple[Any, str, int]] = [("auto", "in the cache", 2), ("record", "in the recordings", 3)]
    for writes, key, value in wrote:
        room = StoreRoom(replace(known, mode=writes))
        room.open("vectors", "m", "1").put({key_of(key): row(value)})
        room.flush()
    keys = [key_of("in the cache"), key_of("in the recordings")]
    got = StoreRoom(replace(known, mode=mode)).open("vectors", "m", "1").get(keys)
    assert [None if each is None else each[0, 0] for each in got] == found


# What `.ci/record` makes of stores: few segments, and those of before where their entries are what they were.

ROOT = Path(__file__).parents[4]
MODEL = "mini@{}-512-float32"


@pytest.fixture(scope="module")
def merge() -> Callable[[Path, Path], None]:
    found: Callable[[Path, Path], None] = runpy.run_path(str(ROOT / ".ci/merge_stores.py"))["merge"]
    return found


def write(folder: Path, *segments: dict[str, float]) -> None:
    for entries in segments:
        store = ArrayStore([], folder)
        store.put({key_of(text): np.full((1, 3), value, np.float32) for text, value in entries.items()})
        store.flush()


def merged_files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_a_store_with_the_same_keys_is_left_alone_also_under_another_identity(
    tmp_path: Path, merge: Callable[[Path, Path], None]
) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    write(before / "vectors" / MODEL.format("old"), {"a": 1, "b": 2}, {"c": 3})
    write(now / "vectors" / MODEL.format("new"), {"c": 3.00001}, {"b": 2, "a": 1.00001})
    merge(before, now)
    assert merged_files(now / "vectors" / MODEL.format("new")) == merged_files(before / "vectors" / MODEL.format("old"))


def test_what_is_new_changed_or_gone_is_written_and_the_rest_stays(
    tmp_path: Path, merge: Callable[[Path, Path], None]
) -> None:
    before, now = tmp_path / "before" / "pairs" / "m@1", tmp_path / "now" / "pairs" / "m@1"
    write(before, {"stays": 1, "too": 2}, {"changed": 3, "beside": 4}, {"gone": 5})
    write(now, {"stays": 1}, {"too": 2, "new": 6}, {"changed": 3.5}, {"beside": 4})
    merge(tmp_path / "before", tmp_path / "now")
    kept = merged_files(before).items() & merged_files(now).items()
    assert len(kept) == 1
    assert len(merged_files(now)) == 2
    store = ArrayStore([now])
    assert len(store) == 5
    texts = ["stays", "too", "changed", "beside", "new"]
    found = [0 if array is None else array[0, 0] for array in store.get([key_of(text) for text in texts])]
    assert found == [1, 2, 3.5, 4, 6]


def test_texts_and_shapes_have_to_be_equal(tmp_path: Path, merge: Callable[[Path, Path], None]) -> None:
    """A text is stored as bytes, of which none is near another one."""
    before, now = tmp_path / "before" / "chunks", tmp_path / "now" / "chunks"
    for folder, text in ((before / "m@whole-1-aa", b"abc"), (now / "m@whole-1-bb", b"abd")):
        store = ArrayStore([], folder)
        store.put({key_of("page"): np.frombuffer(text, np.uint8).reshape(-1, 1)})
        store.flush()
    merge(tmp_path / "before", tmp_path / "now")
    (found,) = ArrayStore([now / "m@whole-1-bb"]).get([key_of("page")])
    assert found is not None
    assert bytes(found.ravel()) == b"abd"
