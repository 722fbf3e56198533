"""Documents of chunks, and rankings of documents from rankings of chunks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rag_harness.core.text.comparison import says_words

if TYPE_CHECKING:
    from rag_harness.core.types import Case
    from rag_harness.records.row import ExperimentResult, RetrievedChunk


def document_of(chunk_id: str) -> str:
    """Return the document of a chunk: the part of its id before the last ``#``, or the whole id without one."""
    return chunk_id.rpartition("#")[0] or chunk_id


def place_documents(chunk_ids: Sequence[str]) -> list[str]:
    """Return a ranking of documents as long as the ranking of chunks.

    The rank of a document is the rank of its first hit, and **hits keep their places**. A later hit of the same
    document becomes a unique placeholder that matches no document. Closing these gaps would give too good scores: k
    hits fill k places of a prompt. A document that only the seventh hit brings is not in the top 5, even if the six
    hits before it are from one document.
    """
    placed: dict[str, None] = {}
    for rank, chunk_id in enumerate(chunk_ids, start=1):
        document = document_of(chunk_id)
        placed[document if document not in placed else f"\0hit {rank}"] = None
    return list(placed)


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
    that names none is found by the quotes of ``case``. Documents that ``case`` leaves out do not count as hits: lower
    ranks move up.
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
