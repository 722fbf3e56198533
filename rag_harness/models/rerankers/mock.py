"""A mock reranker, for trial runs: it orders candidates by the number of words shared with the query."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.protocols import RetrievalParts
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Hit
from rag_harness.words.comparison import compared_words


class MockReranker:
    """Counts shared words."""

    model = "mock/word-overlap"
    revision = REVISIONS["rerankers/mock"]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        words = set(compared_words(query))
        scored = [(len(words & set(compared_words(hit.chunk.text))), hit) for hit in hits]
        scored.sort(key=lambda pair: -pair[0])
        return [hit.reranked(float(score), rank) for rank, (score, hit) in enumerate(scored, 1)]


def create(_parts: RetrievalParts) -> MockReranker:
    """Return the mock reranker."""
    return MockReranker()
