"""The retrieve step: from a query's text to ranked hits. What the golden suite tests, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rag_harness.errors import SettingsError, unknown
from rag_harness.protocols import Embedder, Index, LexicalIndex, Reranker, Retriever
from rag_harness.types import Hit

if TYPE_CHECKING:
    from rag_harness.pipelines.parts import RunParts

RRF_K = 60
"""Damping of reciprocal rank fusion; Cormack, Clarke & Büttcher 2009 found 60 good and little depending on it."""


@dataclass(frozen=True)
class DenseRetriever:
    """Nearest chunks by cosine."""

    embedder: Embedder
    index: Index

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.index.search(self.embedder.embed_queries([query])[0], k)


@dataclass(frozen=True)
class LexicalRetriever:
    """Best chunks by BM25."""

    index: LexicalIndex

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.index.search(query, k)


@dataclass(frozen=True)
class HybridRetriever:
    """Reciprocal rank fusion: a chunk scores the sum of 1 / (60 + its rank) over the retrievers that found it.

    Source: Cormack, Clarke & Büttcher, "Reciprocal Rank Fusion outperforms Condorcet", SIGIR 2009.
    """

    retrievers: Sequence[Retriever]
    depth: int = 100

    def retrieve(self, query: str, k: int) -> list[Hit]:
        scores: dict[str, float] = {}
        hits: dict[str, Hit] = {}
        for retriever in self.retrievers:
            for hit in retriever.retrieve(query, max(k, self.depth)):
                scores[hit.chunk.chunk_id] = scores.get(hit.chunk.chunk_id, 0.0) + 1 / (RRF_K + hit.rank)
                hits.setdefault(hit.chunk.chunk_id, hit)
        best = sorted(scores, key=lambda chunk_id: -scores[chunk_id])[:k]
        return [replace(hits[each], score=scores[each], rank=n, source="hybrid") for n, each in enumerate(best, 1)]


@dataclass(frozen=True)
class RerankedRetriever:
    """The first stage's ``candidates`` in the reranker's order; more than those are never returned."""

    first: Retriever
    reranker: Reranker
    candidates: int

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.reranker.rerank(query, self.first.retrieve(query, self.candidates))[:k]


RETRIEVERS = ("dense", "bm25", "hybrid", "reranked")


def retriever_named(
    name: str, parts: RunParts, pipeline_of: Callable[[str], Any], experiments: Sequence[str]
) -> Retriever:
    """Return the retriever that ``name`` stands for: one of ``RETRIEVERS``, or the retrieve step of an experiment.

    Raises:
        SettingsError: there is none of that name, or the experiment retrieves nothing.
    """
    lexical = LexicalRetriever(parts.lexical)
    if name == "dense":
        return parts.retriever
    if name == "bm25":
        return lexical
    if name == "hybrid":
        return HybridRetriever((parts.retriever, lexical))
    if name == "reranked":
        return RerankedRetriever(parts.retriever, parts.reranker, parts.settings.candidates)
    if name in experiments:
        return retrieve_step(name, pipeline_of(name), parts.settings.candidates)
    raise SettingsError(unknown("retriever", name, [*RETRIEVERS, *experiments]))


def retrieve_step(name: str, pipeline: Any, candidates: int) -> Retriever:
    """Return the retrieve step of a pipeline: its own ``retrieve(query, k)``, or its retriever and reranker."""
    if hasattr(pipeline, "retrieve"):
        own: Retriever = pipeline
        return own
    if not hasattr(pipeline, "retriever"):
        raise SettingsError(
            f"Experiment {name!r} retrieves nothing that could be tested. Give its pipeline a method "
            f"retrieve(query, k), or choose another with --rag-retriever."
        )
    first: Retriever = pipeline.retriever
    return RerankedRetriever(first, pipeline.reranker, candidates) if hasattr(pipeline, "reranker") else first
