"""Run one golden entry: a retriever on one query, against what should be found. It never raises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter

from pydantic import BaseModel, ConfigDict

from rag_harness.errors import CriticalError, PrerequisiteError
from rag_harness.files.log import log
from rag_harness.measures.hits import place_documents
from rag_harness.protocols import Retriever
from rag_harness.types import Hit

DEPTH = 100
"""Hits that are looked through for the expected document, so that a miss can say how far off it is."""

_SNIPPET = 160


@dataclass(frozen=True, slots=True)
class RetrievalCase:
    """A query, what counts as found with its relevance, and what to show of it.

    ``by_chunk`` says whether hits are looked up as chunks or as documents, whose rank is that of their first chunk.
    ``names_of`` maps what is looked up to the names in ``relevant`` where they differ: a heading's chunks to the
    heading.
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


class FoundHit(BaseModel):
    """A hit, as a failure message shows it."""

    model_config = ConfigDict(frozen=True)
    rank: int
    chunk_id: str
    document: str
    section: str
    score: float
    snippet: str


class RetrievalResult(BaseModel):
    """What a retriever returned for one golden entry."""

    model_config = ConfigDict(frozen=True)
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


def run_retrieval(case: RetrievalCase, retriever: Retriever, name: str, k: int) -> RetrievalResult:
    """Retrieve for one case and find the rank of what was expected.

    Raises:
        CriticalError, PrerequisiteError: no later query can succeed either.
    """
    started = perf_counter()
    hits: list[Hit] = []
    error = ""
    try:
        hits = retriever.retrieve(case.query, max(k, DEPTH))
    except (CriticalError, PrerequisiteError):
        raise
    except Exception as problem:
        log.error("golden %s: retrieval failed", case.case_id, exc_info=problem)
        error = f"{type(problem).__name__}: {problem}"
    elapsed = (perf_counter() - started) * 1000
    ranked = ranked_names(hits, case)
    rank = next((n for n, each in enumerate(ranked, 1) if case.relevant.get(each, 0) > 0), None)
    log.debug("golden %s: rank %s", case.case_id, rank)
    return RetrievalResult(
        case_id=case.case_id,
        query=case.query,
        retriever=name,
        k=k,
        expected=case.expected,
        justification=case.justification,
        passage=case.passage,
        slices=dict(case.slices),
        relevant=dict(case.relevant),
        ranked=tuple(ranked),
        top=tuple(_shown(hit) for hit in hits[:k]),
        rank=rank,
        time_ms=elapsed,
        error=error,
    )


def ranked_names(hits: Sequence[Hit], case: RetrievalCase) -> list[str]:
    """Return the ids that measures are computed on, in the order of the hits: one name takes one place, once."""
    chunk_ids = [hit.chunk.chunk_id for hit in hits]
    keys = chunk_ids if case.by_chunk else place_documents(chunk_ids)
    ranked: dict[str, None] = {}
    for key, chunk_id in zip(keys, chunk_ids, strict=True):
        new = [name for name in case.names_of.get(key, (key,)) if name not in ranked]
        ranked |= dict.fromkeys(new or [f"{chunk_id} again"])
    return list(ranked)


def _shown(hit: Hit) -> FoundHit:
    text = " ".join(hit.chunk.text.split())
    score = hit.rerank_score if hit.rerank_score is not None else hit.score
    return FoundHit(
        rank=hit.rank,
        chunk_id=hit.chunk.chunk_id,
        document=hit.chunk.doc_id,
        section=" > ".join(hit.chunk.section),
        score=score,
        snippet=text[:_SNIPPET],
    )
