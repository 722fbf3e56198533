"""Searching documents that change: stores, terms, token vectors, and the index that was evaluated."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core import package
from rag_harness.core.errors import RegistryError, SettingsError
from rag_harness.core.registry import registered
from rag_harness.core.types import Matrix, TokenVectors, Vector
from rag_harness.models.array_store import ArrayStore, key_of
from rag_harness.models.dry_run import MockEmbedder
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.service.corpus import contents
from rag_harness.service.corpus.contents import CollectionStores, LiveTerms, MemoryStore, TokenStore
from rag_harness.service.corpus.search import LiveIndex
from rag_harness.service.corpus.tenant_collections import TenantCollection
from tests.unit.hits import chunks_of
from tests.unit.service.corpus.corpora import DEFAULT, PAGES, check_finds, found, opened, write_pages


class Points:
    """An index that breaks ties as unkindly as it can: the last point first."""

    def __init__(self, scores: Mapping[int, float]) -> None:
        self.scores, self.asked = dict(scores), list[int]()

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        self.asked.append(limit)
        best = sorted(self.scores, key=lambda point: (-self.scores[point], -point))
        return [(self.scores[point], point) for point in best[:limit]]

    def add(self, ids: Sequence[int], vectors: Matrix) -> None: ...
    def remove(self, ids: Sequence[int]) -> None: ...
    def ids(self) -> set[int]:
        return set(self.scores)

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        return {}

    def tidy(self) -> None: ...
    def close(self) -> None: ...


@settings(max_examples=200)
@given(
    st.dictionaries(st.integers(1, 60), st.sampled_from([0.1, 0.2, 0.5, 0.9]), min_size=1),
    st.data(),
    st.integers(1, 12),
)
def test_it_finds_the_best_of_its_state_whatever_else_is_in_the_index(
    scores: dict[int, float], data: st.DataObject, k: int
) -> None:
    own = data.draw(st.lists(st.sampled_from(sorted(scores)), unique=True))
    points, chunks = Points(scores), chunks_of([f"text {point}" for point in own])
    hits = LiveIndex(points, own, chunks).search(np.zeros(4, np.float32), k)
    best = sorted(range(len(own)), key=lambda place: (-scores[own[place]], place))[:k]
    assert [hit.chunk for hit in hits] == [chunks[place] for place in best]
    assert [hit.score for hit in hits] == [scores[own[place]] for place in best]
    assert [hit.rank for hit in hits] == list(range(1, len(best) + 1))


def test_it_asks_once_where_all_points_are_of_its_state() -> None:
    points = Points({point: 1 / point for point in range(1, 100)})
    LiveIndex(points, range(1, 100), chunks_of([f"text {n}" for n in range(1, 100)])).search(np.zeros(4, np.float32), 5)
    assert points.asked == [6]


WORDS = ["lamp", "lamps", "fee", "the", "zinc"]
TEXTS = st.lists(st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join), min_size=1, max_size=8)


@settings(max_examples=50)
@given(TEXTS, st.data())
def test_weights_are_those_over_the_chunks_of_the_state(texts: list[str], data: st.DataObject) -> None:
    pool, live = chunks_of(texts), LiveTerms()
    states = []
    for _ in range(data.draw(st.integers(1, 5))):
        some = [pool[n] for n in data.draw(st.lists(st.integers(0, len(pool) - 1), unique=True))]
        states.append((some, live.over(some)))
    for some, weights in states:
        alone = Rarity(some)
        assert [weights.of(word) for word in ("lamp", "fee", "zinc", "none")] == [
            alone.of(word) for word in ("lamp", "fee", "zinc", "none")
        ]
    assert all(live._having.values())


# A service opens the index that was evaluated, or says why it does not.

POINTS = """
OPENED = []


class Points:
    def __init__(self):
        self.of = {}

    def add(self, ids, vectors):
        self.of.update(zip(ids, vectors))

    def remove(self, ids):
        for each in ids:
            self.of.pop(each, None)

    def nearest(self, vector, limit):
        return sorted(((float(row @ vector), each) for each, row in self.of.items()), reverse=True)[:limit]

    def ids(self):
        return set(self.of)

    def vectors(self, ids):
        return {each: self.of[each] for each in ids if each in self.of}

    def tidy(self):
        pass

    def close(self):
        pass


def open_points(settings, folder, name):
    OPENED.append(name)
    return Points()
"""
Own = Callable[[str], None]


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Own]:
    """Write the module of the index ``mine``, and register it."""
    there = package.entry_points_by()

    def points(*, group: str, **more: Any) -> Any:
        mine = EntryPoint("mine", "own_index:create", "rag_harness.indexes")
        return [mine] if group == "rag_harness.indexes" else there(group=group, **more)

    def written(text: str) -> None:
        (tmp_path / "own_index.py").write_text(f"def create(parts): ...\n{text}")
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, "own_index", raising=False)
        monkeypatch.setattr(package, "entry_points_by", lambda: points)
        registered.cache_clear()

    yield written
    monkeypatch.undo()
    registered.cache_clear()


def serve(root: Path, **changes: Any) -> None:
    async def scenario() -> None:
        async with opened(root, write_pages(root / "kb"), **changes) as corpora:
            collection = corpora.get(DEFAULT)
            check_finds(collection, PAGES)
            assert (await found(collection, "Is a zip mended?"))[0] == "warranty.md"
            (document,) = [each for each in collection.documents() if each.name == "warranty.md"]
            await collection.delete(document.doc_id)
            assert "warranty.md" not in await found(collection, "Is a zip mended?")

    asyncio.run(scenario())


def test_an_index_of_ones_own_that_can_change_is_served(tmp_path: Path, own: Own) -> None:
    own(POINTS)
    serve(tmp_path, index="mine")
    import own_index  # type: ignore[import-not-found]

    assert len(own_index.OPENED) == 1


def test_one_that_cannot_change_is_refused_with_the_reason(tmp_path: Path, own: Own) -> None:
    own("")
    with pytest.raises(SettingsError, match=r"own_index has no open_points\(settings, folder, name\)"):
        serve(tmp_path, index="mine")


def test_an_index_that_is_not_there_is_told_its_nearest(tmp_path: Path) -> None:
    with pytest.raises(RegistryError, match=r"Unknown index .qdrnt.\. Did you mean 'qdrant'"):
        serve(tmp_path, index="qdrnt")


def test_a_graph_that_was_evaluated_is_not_served_as_an_exact_search(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="qdrant_graph searches by a graph, and a service compares every"):
        serve(tmp_path, mode="live", qdrant_url="http://127.0.0.1:1", qdrant_graph=["m=16"])


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


# Token vectors, which a reranker compares: computed when a document comes or beside questions, and gone with it.

LATE = "embedded/late-interaction"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give the mock embedder token vectors, and note the documents that it computes them of, with the thread."""
    texts: list[str] = []

    def embed_with_tokens(self: MockEmbedder, some: Sequence[str], role: str) -> tuple[Matrix, list[TokenVectors]]:
        texts.extend(some if role == "document" else [])
        vectors = self.embed_documents(some)
        return vectors, [row.reshape(1, -1).astype(np.float16) for row in vectors]

    monkeypatch.setattr(MockEmbedder, "embed_with_tokens", embed_with_tokens, raising=False)
    return texts


def lacking(collection: TenantCollection) -> list[bool]:
    texts = [chunk.text for held in collection._contents.held for chunk in held.chunks]
    return collection._tokens.lacks([key_of("document", text) for text in texts])


def test_they_come_and_go_with_their_document(tmp_path: Path, asked: list[str]) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "e3", rerank_model=LATE) as corpora:
            collection = corpora.get(DEFAULT)
            assert lacking(collection) == [False] * len(PAGES)
            computed = len(asked)
            assert (await found(collection, "Is a zip mended?"))[0] == "warranty.md"
            assert len(asked) == computed
            done = await collection.ingest("stoves.md", b"# Stoves\n\nGas.\n")
            key = key_of("document", collection._contents.by_name["stoves.md"].chunks[0].text)
            assert collection._tokens.lacks([key]) == [False]
            await collection.delete(done.doc_id)
            assert collection._tokens.lacks([key]) == [True]

    asyncio.run(scenario())


def test_those_that_are_lost_are_computed_again_beside_questions(tmp_path: Path, asked: list[str]) -> None:
    async def scenario() -> None:
        kb = write_pages(tmp_path / "kb")
        async with opened(tmp_path, kb, "e3", rerank_model=LATE):
            pass
        (tmp_path / "state" / "collections" / "1" / "tokens.sqlite3").unlink()
        asked.clear()
        async with opened(tmp_path, kb, "e3", rerank_model=LATE) as corpora:
            collection = corpora.get(DEFAULT)
            while any(lacking(collection)):
                await asyncio.sleep(0.01)
            assert len(asked) == len(PAGES)

    asyncio.run(scenario())
