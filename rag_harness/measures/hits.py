"""Ranks retrieved chunks as documents, for gold that names documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_harness.retrieval.documents import document_of, place_documents
from rag_harness.words.same_words import says_words

if TYPE_CHECKING:
    from rag_harness.results.row import ExperimentResult
    from rag_harness.results.row_parts import RetrievedChunk
    from rag_harness.types import Case


def _looked_up(case: Case | None, chunk: RetrievedChunk) -> str:
    by_quote = "" if chunk.metadata.filename else document_in(case, chunk)
    return f"{by_quote}#by a quote" if by_quote else chunk.chunk_id


def document_in(case: Case | None, chunk: RetrievedChunk) -> str:
    """Return the document of a prompt's chunk; empty where it is not known.

    A service may return chunks without a document. Such a chunk counts as part of the first page whose quote it
    contains word for word. Only this function does so, where gold is known.
    """
    document = chunk.metadata.filename
    if document or case is None:
        return document
    return next((quote.filename for quote in case.evidence if says_words(chunk.text, quote.quote)), "")


def ranking_of(row: ExperimentResult, case: Case | None = None) -> Sequence[str]:
    """Return the names that ranking measures use, best first: those in the row, else the documents of its chunks.

    The prompt's chunks come first, in their order, then the other candidates by rerank score. The document of a chunk
    that names none is found by the quotes of ``case``. What ``case`` leaves out is no hit: what is below moves up.
    """
    if row.ranking is not None:
        return row.ranking
    known = {chunk.chunk_id for chunk in row.retrieved_chunks}
    prompt = [_looked_up(case, chunk) for chunk in row.retrieved_chunks]
    rest = [candidate for candidate in row.candidates if candidate.chunk_id not in known]
    if any(candidate.rerank_score is not None for candidate in rest):
        rest.sort(key=lambda found: -(found.rerank_score if found.rerank_score is not None else float("-inf")))
    hits = [*prompt, *(candidate.chunk_id for candidate in rest)]
    left_out = case.left_out if case else frozenset()
    return place_documents([hit for hit in hits if document_of(hit) not in left_out] if left_out else hits)
