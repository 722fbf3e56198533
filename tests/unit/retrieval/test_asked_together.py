"""Queries in flight together are one request to an index behind a network."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from rag_harness.core.settings import Settings
from rag_harness.core.types import Hit, IndexSpec, Matrix, Vector
from rag_harness.retrieval.builder import Retrieval
from rag_harness.retrieval.cuts import WindowedRetriever
from rag_harness.retrieval.retrievers import DenseRetriever, SharedRetriever
from tests.unit.hits import chunks_of

CHUNKS = chunks_of(["a", "b", "c", "d"])


class Index:
    """Finds chunk n first for the vector [n]."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int]] = []

    def search(self, vector: Vector, k: int) -> list[Hit]:
        first = int(vector[0])
        return [Hit(CHUNKS[(first + n) % 4], 1.0 - n, n + 1) for n in range(k)]


class Together(Index):
    def search_many(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        self.asked.append((len(vectors), k))
        return [self.search(vector, k) for vector in vectors]


def over(index: Index) -> Any:
    def embed_queries(texts: Sequence[str]) -> Matrix:
        return np.array([[float(text)] for text in texts], np.float32)

    return SimpleNamespace(index=index, embedder=SimpleNamespace(embed_queries=embed_queries))


def test_queries_of_one_k_are_one_request() -> None:
    requests = [("2", 1), ("0", 3), ("1", 1), ("3", 3), ("2", 3)]
    together, alone = Together(), Index()
    found = DenseRetriever(over(together)).retrieve_many(requests)
    assert sorted(together.asked) == [(2, 1), (3, 3)]
    assert found == DenseRetriever(over(alone)).retrieve_many(requests)
    assert found == [DenseRetriever(over(alone)).retrieve(*each) for each in requests]


def test_trials_that_ask_at_once_share_a_request() -> None:
    index = Together()
    shared = SharedRetriever(DenseRetriever(over(index))).shared

    async def ask() -> list[str]:
        found = await asyncio.gather(*(shared.ask((str(n % 4), 2)) for n in range(8)))
        return [hits[0].chunk.text for hits, _ in found]

    assert asyncio.run(ask()) == ["a", "b", "c", "d"] * 2
    assert sum(count for count, _ in index.asked) == 4
    assert len(index.asked) <= 2


def test_windows_of_many_queries_are_one_request_and_deeper_ones_what_is_lacking() -> None:
    windows = [replace(chunk, chunk_id=f"{chunk.chunk_id}~{n}") for chunk in CHUNKS for n in range(3)]

    class Windows(Together):
        """The windows of chunk n first, for [n]; then those of the next."""

        def search(self, vector: Vector, k: int) -> list[Hit]:
            placed = [windows[(int(vector[0]) * 3 + n) % 12] for n in range(min(k, 12))]
            return [Hit(window, 1.0 - n, n + 1) for n, window in enumerate(placed)]

    index = Windows()
    windowed = over(index)
    windowed.chunk_of_window = {window.chunk_id: CHUNKS[n // 3] for n, window in enumerate(windows)}
    retriever = WindowedRetriever(windowed)
    found = retriever.retrieve_many([("2", 1), ("0", 3), ("1", 3)])
    assert [[hit.chunk.text for hit in hits] for hits in found] == [["c"], ["a", "b", "c"], ["b", "c", "d"]]
    assert sorted(index.asked) == [(1, 2), (2, 6)]
    assert found[1] == retriever.retrieve("0", 3)


@pytest.mark.parametrize(("url", "counts"), [("http://127.0.0.1:6333", True), ("", False)])
def test_what_is_searched_by_a_graph_is_another_retrieval(url: str, counts: bool) -> None:
    def identity(graph: tuple[str, ...]) -> Any:
        settings = Settings(qdrant_url=url, qdrant_graph=graph)
        embedder: Any = SimpleNamespace(model="tiny", revision="1")
        stores: Any = None
        return Retrieval(IndexSpec("sections", 512, 128, "tiny", "qdrant"), list, settings, stores, embedder).identity()

    assert "searched_by" not in identity(())
    assert ("searched_by" in identity(("m=8",))) == counts
    assert (identity(("m=8",)) != identity(("m=9",))) == counts
