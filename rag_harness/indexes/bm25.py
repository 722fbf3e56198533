"""BM25 over all chunks, by bm25s: Robertson's formula as Lucene computes it, English stop words and Snowball stems.

Source: Robertson & Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009; k1 = 0.9 and b = 0.4 are
Anserini's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from rag_harness.types import Chunk, Hit

K1, B = 0.9, 0.4


class Bm25Index:
    """Scores and finds chunks by the words they share with a query."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        import bm25s
        import Stemmer

        self._chunks = list(chunks)
        self._split: Any = partial(
            bm25s.tokenize, stopwords="en", stemmer=Stemmer.Stemmer("english"), show_progress=False, return_ids=False
        )
        self._bm25 = bm25s.BM25(k1=K1, b=B, method="lucene")
        tokens = self._split([chunk.text for chunk in self._chunks])
        # bm25s cannot index a corpus without a single word.
        self._empty = not any(tokens)
        if not self._empty:
            self._bm25.index(tokens, show_progress=False)

    def scores(self, query: str) -> dict[str, float]:
        """Return the BM25 score of each chunk by chunk_id; 0 where no word is shared."""
        return dict(zip((chunk.chunk_id for chunk in self._chunks), self._scores(query).tolist(), strict=True))

    def search(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best chunks that share a word with the query, best first; ties in the chunks' order."""
        scores = self._scores(query)
        best = [i for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]
        return [Hit(self._chunks[i], float(scores[i]), n, "bm25") for n, i in enumerate(best, 1)]

    def _scores(self, query: str) -> np.ndarray:
        words = self._split([query])[0]
        if self._empty or not words:
            return np.zeros(len(self._chunks), np.float32)
        scores: np.ndarray = self._bm25.get_scores(words)
        return scores
