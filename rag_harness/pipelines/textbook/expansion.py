"""Summaries are searched first, and the sections that they are of come back whole; alternative D of the record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rag_harness.protocols import Retriever
from rag_harness.types import Chunk, Decision, Hit

SEARCHED, DEPTH = 20, 100
"""Summaries that are looked at, and sections whose own cosine is known."""
EXTRACTIVE = Decision("summaries", "extractive", reason="the first sentences of each section: no model wrote them")


@dataclass(frozen=True)
class SummariesFirst:
    """Finds summaries, and returns their sections by the better of two cosines: the summary's, the section's own.

    Args:
        summaries: finds summaries by cosine; each has the id of its section.
        full: finds sections by cosine.
        sections: returns the sections by their ids.
    """

    summaries: Retriever
    full: Retriever
    sections: Callable[[], Mapping[str, Chunk]]

    def retrieve(self, query: str, k: int) -> list[Hit]:
        own = {hit.chunk.chunk_id: hit.score for hit in self.full.retrieve(query, max(k, DEPTH))}
        known = self.sections()
        found = [
            (max(hit.score, own.get(hit.chunk.chunk_id, hit.score)), hit.score, known[hit.chunk.chunk_id])
            for hit in self.summaries.retrieve(query, max(k, SEARCHED))
        ]
        found.sort(key=lambda each: (-each[0], each[2].chunk_id))
        return [
            Hit(chunk, cosine, rank, scores={"dense": cosine, "summary": summary})
            for rank, (cosine, summary, chunk) in enumerate(found[:k], 1)
        ]
