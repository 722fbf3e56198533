"""Fuses two first stages: nearest by cosine and best by words. This is alternative B of the decision record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from rag_harness.protocols import Retriever
from rag_harness.retrieval.retrievers import RRF_K
from rag_harness.types import Hit

DENSE_WEIGHT, WORDS_WEIGHT = 0.7, 0.3
DEPTH = 100
"""How many candidates each of the two finds."""

Fuse = Callable[[Sequence[Hit], Sequence[Hit]], Mapping[str, float]]
"""From hits by cosine and hits by words to a score for each chunk among them."""


@dataclass(frozen=True)
class Fused:
    """Fuses the candidates of two retrievers.

    The floor needs a cosine for every chunk. A chunk that was found only by words gets the lowest cosine of the
    candidates; its true cosine is not higher.
    """

    dense: Retriever
    words: Retriever
    fuse: Fuse

    def retrieve(self, query: str, k: int) -> list[Hit]:
        near = self.dense.retrieve(query, max(k, DEPTH))
        worded = self.words.retrieve(query, max(k, DEPTH))
        scores = self.fuse(near, worded)
        hits = {hit.chunk.chunk_id: hit for hit in (*worded, *near)}
        lowest = {"dense": min((hit.score for hit in near), default=0.0)}
        signals: dict[str, dict[str, float]] = {name: dict(lowest) for name in hits}
        for hit in (*near, *worded):
            signals[hit.chunk.chunk_id].update(hit.scores)
        best = sorted(scores, key=lambda name: (-scores[name], -signals[name]["dense"], name))[:k]
        for name in best:
            signals[name]["hybrid"] = scores[name]
        return [
            replace(hits[name], score=scores[name], rank=rank, source="hybrid", scores=signals[name])
            for rank, name in enumerate(best, 1)
        ]


def weighted(near: Sequence[Hit], worded: Sequence[Hit]) -> dict[str, float]:
    """Return 0.7 cosine + 0.3 BM25, each scaled to 0..1 over its candidates; a missing score counts as 0."""
    by_cosine, by_words = _stretched(near), _stretched(worded)
    return {
        name: DENSE_WEIGHT * by_cosine.get(name, 0.0) + WORDS_WEIGHT * by_words.get(name, 0.0)
        for name in (by_cosine | by_words)
    }


def by_rank(near: Sequence[Hit], worded: Sequence[Hit]) -> dict[str, float]:
    """Return reciprocal rank fusion: the sum of 1 / (60 + rank); see ``retrieval.retrievers.HybridRetriever``."""
    scores: dict[str, float] = {}
    for hit in (*near, *worded):
        scores[hit.chunk.chunk_id] = scores.get(hit.chunk.chunk_id, 0.0) + 1 / (RRF_K + hit.rank)
    return scores


def _stretched(hits: Sequence[Hit]) -> dict[str, float]:
    """Return scores scaled from 0, the lowest, to 1, the highest; all are 1 if they are equal."""
    low = min((hit.score for hit in hits), default=0.0)
    width = max((hit.score for hit in hits), default=0.0) - low
    return {hit.chunk.chunk_id: (hit.score - low) / width if width > 0 else 1.0 for hit in hits}
