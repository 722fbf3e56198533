"""The retrieve step: from a query's text to ranked hits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from rag_harness.protocols import Embedder, Index, LexicalIndex, Reranker, Retriever
from rag_harness.types import Hit, Vector

RRF_K = 60
"""Damping of reciprocal rank fusion. Cormack, Clarke & Büttcher 2009 found 60 good, and other values similar."""


class Searchable(Protocol):
    """The parts for the first stage of retrieval. Each is made on first use."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index."""
        ...

    @property
    def index(self) -> Index:
        """The vector index."""
        ...

    @property
    def lexical(self) -> LexicalIndex:
        """The lexical index."""
        ...


@dataclass(frozen=True)
class DenseRetriever:
    """Nearest chunks by cosine."""

    over: Searchable

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.over.index.search(self.over.embedder.embed_queries([query])[0], k)

    def retrieve_many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        """Return the hits of each query and k. An index behind a network gets one request for all."""
        vectors = self.over.embedder.embed_queries([query for query, _ in requests])
        return searched_together(self.over.index, list(vectors), [k for _, k in requests])


def searched_together(index: Index, vectors: Sequence[Vector], depths: Sequence[int]) -> list[list[Hit]]:
    """Return the hits of each vector, as many as its depth. An index's ``search_many`` is called once a depth."""
    search_many = getattr(index, "search_many", None)
    if search_many is None:
        return [index.search(vector, depth) for vector, depth in zip(vectors, depths, strict=True)]
    found: dict[int, list[Hit]] = {}
    # By depth: the hits of a graph depend on the depth, and must not depend on simultaneous requests.
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
    """Reciprocal rank fusion. The score of a chunk is the sum of 1 / (60 + rank) over the retrievers that found it.

    ``weights`` are factors of the parts of the sum, one a retriever; without any all are 1.

    Source: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
    """

    retrievers: Sequence[Retriever]
    depth: int = 100
    weights: Sequence[float] = ()

    def retrieve(self, query: str, k: int) -> list[Hit]:
        rankings = (retriever.retrieve(query, max(k, self.depth)) for retriever in self.retrievers)
        return fused(rankings, k, "hybrid", self.weights)


def fused(rankings: Iterable[Sequence[Hit]], k: int, source: str, weights: Sequence[float] = ()) -> list[Hit]:
    """Return the best ``k`` of several rankings, scored by the sum of weight / (60 + rank); weights are 1 by default.

    If a chunk has a signal in several rankings, the highest counts. Of equal chunks, the first one found is first.
    """
    scores: dict[str, float] = {}
    hits: dict[str, Hit] = {}
    signals: dict[str, dict[str, float]] = {}
    weighted = zip(rankings, weights, strict=True) if weights else ((ranking, 1.0) for ranking in rankings)
    for hit, weight in ((hit, weight) for ranking, weight in weighted for hit in ranking):
        name = hit.chunk.chunk_id
        scores[name] = scores.get(name, 0.0) + weight / (RRF_K + hit.rank)
        hits.setdefault(name, hit)
        known = signals.setdefault(name, {})
        known.update({signal: max(value, known.get(signal, value)) for signal, value in hit.scores.items()})
    best = sorted(scores, key=lambda name: -scores[name])[:k]
    return [
        Hit(hits[name].chunk, scores[name], n, source, {"rrf": scores[name], **signals[name]})
        for n, name in enumerate(best, 1)
    ]


@dataclass(frozen=True)
class RerankedRetriever:
    """Reranks the first stage's ``candidates``, and never returns more than these."""

    first: Retriever
    reranker: Reranker
    candidates: int

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the ``k`` best of them for ``query``, best first, ranks from 1."""
        return self.reranker.rerank(query, self.first.retrieve(query, self.candidates))[:k]
