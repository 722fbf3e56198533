"""Searches summaries first, and returns their whole sections: alternative D of the decision record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from rag_harness.protocols import Retriever
from rag_harness.types import Chunk, Decision, Hit

SEARCHED, DEPTH = 20, 100
"""How many summaries are looked at, and how many sections have a cosine of their own."""
EXTRACTIVE = Decision("summaries", "extractive", reason="the first sentences of each section: no model wrote them")


@dataclass(frozen=True)
class SummariesFirst:
    """Finds summaries, and returns their sections by the better of two cosines: the summary's and the section's.

    Args:
        summaries: finds summaries by cosine; each has the id of its section.
        full: finds sections by cosine.
        sections: returns all sections.
    """

    summaries: Retriever
    full: Retriever
    sections: Callable[[], Sequence[Chunk]]

    @cached_property
    def _known(self) -> dict[str, Chunk]:
        return {chunk.chunk_id: chunk for chunk in self.sections()}

    def retrieve(self, query: str, k: int) -> list[Hit]:
        own = {hit.chunk.chunk_id: hit.score for hit in self.full.retrieve(query, max(k, DEPTH))}
        known = self._known
        found = [
            (max(hit.score, own.get(hit.chunk.chunk_id, hit.score)), hit.score, known[hit.chunk.chunk_id])
            for hit in self.summaries.retrieve(query, max(k, SEARCHED))
            if hit.chunk.chunk_id in known  # a section that is a near-duplicate may have a summary that is none
        ]
        found.sort(key=lambda each: (-each[0], each[2].chunk_id))
        return [
            Hit(chunk, cosine, rank, scores={"dense": cosine, "summary": summary})
            for rank, (cosine, summary, chunk) in enumerate(found[:k], 1)
        ]
