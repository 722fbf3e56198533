"""The result of a retriever for one golden entry, from its row and the entry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from rag_harness.core.types import Case, Query
from rag_harness.records.document_ranking import place_documents
from rag_harness.records.row import ExperimentResult, RetrievedChunk

_SNIPPET = 160


@dataclass(frozen=True, slots=True)
class RetrievalCase:
    """A golden entry: the query, the relevant names with their grades, and the words that messages show.

    ``by_chunk`` says whether a hit counts as a chunk or as a document. The rank of a document is the rank of its first
    chunk. ``names_of`` maps hits to the names in ``relevant`` where they differ, e.g. the chunks of a heading to the
    heading. Documents of ``left_out`` do not count as hits.
    """

    case_id: str
    query: str
    relevant: Mapping[str, int]
    by_chunk: bool = False
    names_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    justification: str = ""
    passage: str = ""
    slices: Mapping[str, str] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()

    @property
    def case(self) -> Case:
        """The entry as a case of the engine."""
        return Case(
            Query(self.case_id, self.query),
            query_type=self.slices.get("query_type", "direct"),
            qrels=self.relevant,
            metadata=self.slices,
            left_out=self.left_out,
        )


class FoundHit(BaseModel):
    """A hit, as a failure message shows it."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)
    rank: int
    chunk_id: str
    document: str
    section: str
    score: float
    snippet: str


class RetrievalResult(BaseModel):
    """The result of a retriever for one golden entry."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)
    case_id: str
    query: str
    retriever: str
    k: int
    expected: tuple[str, ...]
    justification: str
    passage: str
    slices: dict[str, str]
    relevant: dict[str, int]
    ranked: tuple[str, ...] = ()
    top: tuple[FoundHit, ...] = ()
    rank: int | None = None
    time_ms: float = 0.0
    error: str = ""

    @property
    def found(self) -> bool:
        """Whether something expected is among the first ``k`` hits."""
        return self.rank is not None and self.rank <= self.k

    @property
    def ok(self) -> bool:
        """Whether the retriever answered at all."""
        return not self.error


def retrieval_result(case: RetrievalCase, row: ExperimentResult, retriever: str, k: int) -> RetrievalResult:
    """Return the retrieved documents of an entry's row, compared with its gold."""
    ranked = row.ranking or ()
    return RetrievalResult(
        case_id=case.case_id,
        query=case.query,
        retriever=retriever,
        k=k,
        expected=case.expected,
        justification=case.justification,
        passage=case.passage,
        slices=dict(case.slices),
        relevant=dict(case.relevant),
        ranked=ranked,
        top=tuple(_shown(rank, chunk) for rank, chunk in enumerate(row.retrieved_chunks, 1)),
        rank=rank_of(ranked, case.relevant),
        time_ms=row.total_time_ms,
        error=f"{row.error.type}: {row.error.message}" if row.error else "",
    )


def rank_of(ranked: Sequence[str], relevant: Mapping[str, int]) -> int | None:
    """Return the rank of the first relevant name; None where none is relevant."""
    return next((rank for rank, name in enumerate(ranked, 1) if relevant.get(name, 0) > 0), None)


def ranked_names(chunk_ids: Sequence[str], case: RetrievalCase) -> list[str]:
    """Return the names that measures are computed on, in the order of the hits. Each name has one rank, its first."""
    keys = chunk_ids if case.by_chunk else place_documents(chunk_ids)
    ranked: dict[str, None] = {}
    for key, chunk_id in zip(keys, chunk_ids, strict=True):
        new = [name for name in case.names_of.get(key, (key,)) if name not in ranked]
        ranked |= dict.fromkeys(new or [f"{chunk_id} again"])
    return list(ranked)


def _shown(rank: int, chunk: RetrievedChunk) -> FoundHit:
    score = chunk.rerank_score if chunk.rerank_score is not None else chunk.score
    return FoundHit(
        rank=rank,
        chunk_id=chunk.chunk_id,
        document=chunk.metadata.filename,
        section=chunk.metadata.section,
        score=score,
        snippet=" ".join(chunk.text.split())[:_SNIPPET],
    )
