"""Finds sources: searches the question and its parts by meaning and by words, fuses the hits, and reranks them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Reranker, Retriever
from rag_harness.retrieval.rarity import Rarity
from rag_harness.retrieval.retrievers import fused
from rag_harness.settings.reliability_numbers import USUAL, QualityWeights
from rag_harness.studies.reliability import quality
from rag_harness.studies.reliability.quality import AbsoluteScores, Signals
from rag_harness.studies.reliability.scales import COSINE, Scale, scale_of
from rag_harness.types import Hit

SOURCE = "hybrid"
"""The source of a chunk that comes from several fused rankings."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The result of a search: all hits, the context, the signals, the quality made from them, and the raw scores.

    ``raw`` has the values by the score's name, before they are read by a scale.
    """

    retrieved: tuple[Hit, ...]
    context: tuple[Hit, ...]
    signals: Signals
    quality: float
    raw: Mapping[str, AbsoluteScores]


@dataclass(frozen=True)
class Searcher:
    """Searches with every retriever for every sub-question.

    Args:
        retrievers: one by meaning, one by words.
        reranker: orders the fused hits for the question.
        rarity: makes the weights of words, on first use.
        top_k: number of hits in the context.
        original: whether to measure quality as the first design did.
        weights: of the signals in the quality.
    """

    retrievers: Sequence[Retriever]
    reranker: Reranker
    rarity: Callable[[], Rarity]
    top_k: int
    original: bool = False
    weights: QualityWeights = USUAL.weights

    async def search(self, question: str, searches: Sequence[str], k: int, trace: Trace) -> SearchResult:
        """Return the best ``k`` hits of all ``searches``, reranked for ``question``, and note them in ``trace``."""
        rankings = list[list[Hit]]()
        for search in searches:
            for retriever in self.retrievers:
                await trace.retrieve(retriever, search, k)
                rankings.append(trace.retrieved)
        trace.retrieved = by_meaning(fused(rankings, k, SOURCE)) if len(rankings) > 1 else rankings[0]
        await trace.rerank(self.reranker, question, self.top_k)
        return await trace.off_loop("quality", self._rated, question, trace)

    def _rated(self, question: str, trace: Trace) -> SearchResult:
        """Add absolute scores to the hits, and measure their quality."""
        scale = self.scale
        scores = absolute_scores(self.reranker, question, trace.retrieved)
        trace.retrieved = _scored(trace.retrieved, scale.signal, scores)
        by_id = {hit.chunk.chunk_id: hit for hit in trace.retrieved}
        trace.context = [replace(hit, scores=by_id[hit.chunk.chunk_id].scores) for hit in trace.context]
        if self.original:
            found = quality.original(sorted(trace.retrieved, key=lambda hit: -(hit.rerank_score or 0.0)))
        else:
            found = quality.signals(question, trace.retrieved, trace.context, self.rarity(), scale)
        raw = _raw(trace.retrieved, scale)
        return SearchResult(
            tuple(trace.retrieved), tuple(trace.context), found, quality.quality(found, self.weights), raw
        )

    @property
    def scale(self) -> Scale:
        """The scale of the reranker's absolute score."""
        return scale_of(self.reranker.model, _absolute(self.reranker) is not None)


def by_meaning(hits: Sequence[Hit]) -> list[Hit]:
    """Return fused hits with their cosine as score. Hits found only by words get the lowest cosine.

    Some rerankers combine the given score with a word score of their own. The fused score would count words twice.
    """
    known = [hit.scores["dense"] for hit in hits if "dense" in hit.scores]
    return [replace(hit, score=hit.scores.get("dense", min(known))) for hit in hits] if known else list(hits)


def absolute_scores(reranker: Reranker, question: str, hits: Sequence[Hit]) -> Sequence[float]:
    """Return a score for each hit that can be compared between questions; empty if the reranker has none."""
    scores = _absolute(reranker)
    return list(scores(question, hits)) if scores and hits else []


def _absolute(reranker: Reranker) -> Callable[[str, Sequence[Hit]], Sequence[float]] | None:
    # The reranker may be wrapped in the cache that trials share.
    found: Any = getattr(getattr(reranker, "inner", reranker), "absolute", None)
    return found if callable(found) else None


def _raw(hits: Sequence[Hit], scale: Scale) -> dict[str, AbsoluteScores]:
    """Return the raw values of the absolute scores, by the score's name."""
    found = {name: quality.raw(hits, name) for name in (scale.signal, COSINE.signal)}
    return {name: raw for name, raw in found.items() if raw is not None}


def _scored(hits: Sequence[Hit], signal: str, scores: Sequence[float]) -> list[Hit]:
    if not scores:
        return list(hits)
    return [replace(hit, scores={**hit.scores, signal: score}) for hit, score in zip(hits, scores, strict=True)]
