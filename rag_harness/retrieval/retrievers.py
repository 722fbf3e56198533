"""The retrieve step: from a query's text to ranked hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from rag_harness.protocols import Embedder, Index, LexicalIndex, Reranker, Retriever
from rag_harness.types import Hit, Vector

RRF_K = 60
"""Damping of reciprocal rank fusion; Cormack, Clarke & Büttcher 2009 found 60 good and little depending on it."""


class Searchable(Protocol):
    """What the first stages search; its parts are made when they are first asked for."""

    @property
    def embedder(self) -> Embedder:
        """Of the index."""
        ...

    @property
    def index(self) -> Index:
        """Finds by vector."""
        ...

    @property
    def lexical(self) -> LexicalIndex:
        """Finds by word."""
        ...


@dataclass(frozen=True)
class DenseRetriever:
    """Nearest chunks by cosine."""

    over: Searchable

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.over.index.search(self.over.embedder.embed_queries([query])[0], k)

    def retrieve_many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        """Return the hits of each query and k; an index behind a network is asked once for all."""
        vectors = self.over.embedder.embed_queries([query for query, _ in requests])
        return searched_together(self.over.index, list(vectors), [k for _, k in requests])


def searched_together(index: Index, vectors: Sequence[Vector], depths: Sequence[int]) -> list[list[Hit]]:
    """Return the hits of each vector, as many as its depth; an index that has ``search_many`` is asked once a depth."""
    search_many = getattr(index, "search_many", None)
    if search_many is None:
        return [index.search(vector, depth) for vector, depth in zip(vectors, depths, strict=True)]
    found: dict[int, list[Hit]] = {}
    # By depth: what a graph finds depends on how many are asked for, and must not on who asks at the same time.
    for depth in set(depths):
        places = [n for n, wanted in enumerate(depths) if wanted == depth]
        found |= dict(zip(places, search_many([vectors[n] for n in places], depth), strict=True))
    return [found[n] for n in range(len(vectors))]


@dataclass(frozen=True)
class LexicalRetriever:
    """Best chunks by BM25."""

    over: Searchable

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.over.lexical.search(query, k)


@dataclass(frozen=True)
class HybridRetriever:
    """Reciprocal rank fusion: a chunk scores the sum of 1 / (60 + its rank) over the retrievers that found it.

    Source: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
    """

    retrievers: Sequence[Retriever]
    depth: int = 100

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return fused((retriever.retrieve(query, max(k, self.depth)) for retriever in self.retrievers), k, "hybrid")


def fused(rankings: Iterable[Sequence[Hit]], k: int, source: str) -> list[Hit]:
    """Return the best ``k`` of several rankings, each scored by the sum of 1 / (60 + its rank) over them.

    A signal that a chunk has in several of them is the highest of those. Of equal chunks the one that was found first
    goes first.
    """
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    signals: dict[str, dict[str, float]] = {}
    for hit in (hit for ranking in rankings for hit in ranking):
        name = hit.chunk.chunk_id
        scores[name] = scores.get(name, 0.0) + 1 / (RRF_K + hit.rank)
        hits.setdefault(name, hit)
        known = signals.setdefault(name, {})
        known.update({signal: max(value, known.get(signal, value)) for signal, value in hit.scores.items()})
    best = sorted(scores, key=lambda name: -scores[name])[:k]
    return [
        replace(hits[name], score=scores[name], rank=n, source=source, scores={"rrf": scores[name], **signals[name]})
        for n, name in enumerate(best, 1)
    ]


@dataclass(frozen=True)
class RerankedRetriever:
    """The first stage's ``candidates`` in the reranker's order; more than those are never returned."""

    first: Retriever
    reranker: Reranker
    candidates: int

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best of them for ``query``, best first, ranks from 1."""
        return self.reranker.rerank(query, self.first.retrieve(query, self.candidates))[:k]
