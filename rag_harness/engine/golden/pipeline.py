"""The golden suite's pipeline: it retrieves and generates nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from rag_harness.measures.golden_run import RetrievalCase, rank_of, ranked_names
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Retriever
from rag_harness.types import Answer, Hit, PipelineOutput, Query

DEPTH = 100
"""Hits that are searched for the expected document, so that a miss can report the document's rank."""


@dataclass(frozen=True)
class GoldenPipeline:
    """Looks up entries with the retriever under test.

    Args:
        step: the retriever under test.
        name: what ``--rag-retriever`` calls it.
        k: cutoff of the suite; the first k hits are the context.
        entries: entries by id. Gold decides the names by which hits are ranked, not which hits are returned.
    """

    step: Retriever
    name: str
    k: int
    entries: Mapping[str, RetrievalCase]

    async def answer(self, query: Query) -> PipelineOutput:
        trace, entry = Trace(), self.entries[query.query_id]
        await trace.retrieve(self.step, query.text, max(self.k, DEPTH) + len(entry.left_out))
        trace.retrieved = _counted(trace.retrieved, entry.left_out)
        trace.context = list(trace.retrieved[: self.k])
        ranked = ranked_names([hit.chunk.chunk_id for hit in trace.retrieved], entry)
        trace.note("retrieve", retriever=self.name, k=self.k, rank=rank_of(ranked, entry.relevant))
        return replace(trace.output(Answer("")), ranking=tuple(ranked), retrieval_only=True)


def _counted(hits: Sequence[Hit], left_out: frozenset[str]) -> list[Hit]:
    """Return the hits without those of documents that do not count. Hits below move up."""
    if not left_out:
        return list(hits)
    counted = (hit for hit in hits if hit.chunk.doc_id not in left_out)
    return [replace(hit, rank=rank) for rank, hit in enumerate(counted, 1)]
