"""A mock reranker, for trial runs: it orders candidates by the number of words shared with the query."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag_harness.protocols import RetrievalParts
from rag_harness.registry.revisions import REVISIONS
from rag_harness.types import Hit


class MockReranker:
    """Counts shared words."""

    model = "mock/word-overlap"
    revision = REVISIONS["rerankers/mock"]

    def rerank(self, query: str, hits: Sequence[Hit]) -> list[Hit]:
        words = set(re.findall(r"\w+", query.lower()))
        scored = [(len(words & set(re.findall(r"\w+", hit.chunk.text.lower()))), hit) for hit in hits]
        scored.sort(key=lambda pair: -pair[0])
        return [hit.reranked(float(score), rank) for rank, (score, hit) in enumerate(scored, 1)]


def create(_parts: RetrievalParts) -> MockReranker:
    """Return the mock reranker."""
    return MockReranker()
