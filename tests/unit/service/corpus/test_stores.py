from __future__ import annotations

from pathlib import Path

import numpy as np

from rag_harness.models.array_store import ArrayStore, key_of
from rag_harness.service.corpus import contents
from rag_harness.service.corpus.contents import CollectionStores, MemoryStore, TokenStore


def row(value: float, length: int = 4) -> np.ndarray:
    return np.full((1, length), value, np.float32)


def test_memory_is_bounded_and_the_newest_stay_together() -> None:
    store = MemoryStore(most=100_000)
    for number in range(3_000):
        store.put({key_of(str(number)): row(number, 100)})
    assert len(store) == contents._YOUNG
    assert store.get([key_of("0"), key_of("2999")])[0] is None
    large = {key_of(f"large{n}"): row(n, 10_000) for n in range(400)}
    for key, array in large.items():
        store.put({key: array})
    assert all(each is not None for each in store.get([*large]))


def test_what_was_asked_for_lately_stays() -> None:
    store = MemoryStore(most=1)
    store.put({b"first": row(1)})
    for number in range(1_000):
        store.put({key_of(str(number)): row(number)})
        assert store.get([b"first"])[0] is not None


def test_stores_below_are_read_in_their_order_and_never_written(tmp_path: Path) -> None:
    below = ArrayStore([], tmp_path)
    below.put({b"a" * 16: row(1)})
    store = MemoryStore([MemoryStore(), below])
    store.put({b"b" * 16: row(2)})
    found = store.get([b"a" * 16, b"b" * 16, b"c" * 16])
    assert [None if each is None else float(each[0, 0]) for each in found] == [1.0, 2.0, None]
    assert len(below) == 1


def test_a_collection_has_stores_of_its_own() -> None:
    one, two = CollectionStores(None, {}), CollectionStores(None, {})
    one.open("pairs", "m", "1").put({b"k": row(1)})
    assert one.open("pairs", "m", "1").get([b"k"])[0] is not None
    assert two.open("pairs", "m", "1").get([b"k"]) == [None]
    assert one.open("pairs", "m", "2").get([b"k"]) == [None]


def test_token_vectors_are_kept_removed_and_thrown_away_with_their_model(tmp_path: Path) -> None:
    tokens = np.arange(12, dtype=np.float16).reshape(3, 4)
    store = TokenStore(tmp_path / "tokens.sqlite3", "model@1")
    store.put({b"a": tokens, b"b": tokens})
    store.remove([b"b"])
    store.close()
    store = TokenStore(tmp_path / "tokens.sqlite3", "model@1")
    found, gone = store.get([b"a", b"b"])
    np.testing.assert_array_equal(found, tokens)
    assert gone is None
    store.close()
    store = TokenStore(tmp_path / "tokens.sqlite3", "model@2")
    assert store.get([b"a"]) == [None]
    store.close()


def test_a_damaged_file_of_token_vectors_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "tokens.sqlite3").write_bytes(b"no database at all, and long enough to be read as a header" * 40)
    store = TokenStore(tmp_path / "tokens.sqlite3", "model@1")
    store.put({b"a": np.ones((1, 2), np.float16)})
    assert store.get([b"a"])[0] is not None
    store.close()
