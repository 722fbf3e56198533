"""A mock embedder, for trial runs: hashed bag-of-words vectors, which only show shared words. It needs no model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from rag_harness.protocols import Parts, Tokenizer
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Matrix, Vector
from rag_harness.words.comparison import compared_words

_DIMENSION = 512


class WordTokenizer:
    """Counts words and punctuation marks."""

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(re.findall(r"\w+|[^\w\s]", text)) for text in texts]


class MockEmbedder:
    """Counts words in hashed buckets and scales the vector to unit length."""

    model = "mock/hashed-words"
    revision = REVISIONS["embedders/mock"]
    needs_no_model = True
    dimension = _DIMENSION
    max_tokens = 100_000

    def tokenizer(self) -> Tokenizer:
        return WordTokenizer()

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        return np.stack([_counts(text) for text in texts]) if texts else np.empty((0, _DIMENSION), np.float32)

    embed_queries = embed_documents


def _counts(text: str) -> Vector:
    buckets = [crc32(word.encode()) % _DIMENSION for word in compared_words(text)]
    counts = np.bincount(buckets or [0], minlength=_DIMENSION).astype(np.float32)
    return counts / np.float32(np.linalg.norm(counts))


def create(_parts: Parts) -> MockEmbedder:
    """Return the mock embedder."""
    return MockEmbedder()
