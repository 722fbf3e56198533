"""What `.ci/record` makes of stores: few segments, and those of before where their entries are what they were."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rag_harness.models.array_store import ArrayStore, key_of

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


def files(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


def test_a_store_with_the_same_keys_is_left_alone_also_under_another_identity(
    tmp_path: Path, merge: Callable[[Path, Path], None]
) -> None:
    before, now = tmp_path / "before", tmp_path / "now"
    write(before / "vectors" / MODEL.format("old"), {"a": 1, "b": 2}, {"c": 3})
    write(now / "vectors" / MODEL.format("new"), {"c": 3.00001}, {"b": 2, "a": 1.00001})
    merge(before, now)
    assert files(now / "vectors" / MODEL.format("new")) == files(before / "vectors" / MODEL.format("old"))


def test_what_is_new_changed_or_gone_is_written_and_the_rest_stays(
    tmp_path: Path, merge: Callable[[Path, Path], None]
) -> None:
    before, now = tmp_path / "before" / "pairs" / "m@1", tmp_path / "now" / "pairs" / "m@1"
    write(before, {"stays": 1, "too": 2}, {"changed": 3, "beside": 4}, {"gone": 5})
    write(now, {"stays": 1}, {"too": 2, "new": 6}, {"changed": 3.5}, {"beside": 4})
    merge(tmp_path / "before", tmp_path / "now")
    kept = files(before).items() & files(now).items()
    assert len(kept) == 1
    assert len(files(now)) == 2
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
