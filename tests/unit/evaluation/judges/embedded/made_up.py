"""An embedder without a model: a piece a word or mark, its vector drawn from its first four letters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np

from rag_harness.core.types import Pieces, TokenVectors
from rag_harness.evaluation.judges.embedded.alignment import Encoded, encode, passage_of
from rag_harness.models.dry_run import MockEmbedder

WIDTH = 384


class WordEmbedder(MockEmbedder):
    """Words that begin alike have the same vector; counts what it is asked for."""

    def __init__(self, spoil: float = 0.0) -> None:
        self.asked: list[str] = []
        self.spoil = spoil

    def pieces(self, text: str, borders: Sequence[int]) -> Pieces:
        self.asked.append(text)
        found = list(re.finditer(r"\w+|[^\w\s]", text))
        ids = np.array([crc32(each[0].lower().encode("utf-8", "replace")) % 30_000 for each in found], np.int64)
        vectors = np.stack([_vector(each[0]) for each in found]) + np.float32(self.spoil)
        return Pieces(ids, np.array([each.span() for each in found], np.int64).reshape(-1, 2), vectors)

    def token_vectors(self, texts: Sequence[str], role: str) -> list[TokenVectors]:
        raise NotImplementedError


@lru_cache
def _vector(word: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    seed = crc32(word.lower()[:4].encode("utf-8", "replace"))
    return np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32)


def encoded(text: str) -> Encoded:
    """Return ``text`` with made-up vectors."""
    return encode(passage_of(text), WordEmbedder().pieces)
