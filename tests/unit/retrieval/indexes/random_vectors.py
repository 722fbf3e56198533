"""Chunks with random vectors, and what every index must return for them."""

from __future__ import annotations

import numpy as np

from rag_harness.core.protocols import Index
from rag_harness.core.types import Chunk, Matrix
from tests.unit.hits import chunks_of


def random_rows(count: int, size: int = 24, seed: int = 0) -> Matrix:
    return np.random.default_rng(seed).normal(size=(count, size)).astype(np.float32)


def named(count: int) -> list[Chunk]:
    return chunks_of([f"text {n}" for n in range(count)])


def check_order_is_that_of_the_cosine(index: Index, rows: Matrix) -> None:
    """Ask an index that was built of ``rows``, which are of any length, and compare with NumPy."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for query in random_rows(20, seed=1):
        cosines = unit @ query / np.linalg.norm(query)
        best = np.argsort(-cosines)[:20]
        hits = index.search(query, 20)
        assert [hit.chunk.text for hit in hits] == [f"text {n}" for n in best]
        np.testing.assert_allclose([hit.score for hit in hits], cosines[best], atol=1e-5)
        assert [hit.rank for hit in hits] == list(range(1, 21))
