"""The document of a chunk, and the ranking of documents from a ranking of chunks."""

from __future__ import annotations

from collections.abc import Sequence


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
