"""Which document a chunk is of, and the ranking of documents that a ranking of chunks makes."""

from __future__ import annotations

from collections.abc import Sequence


def document_of(chunk_id: str) -> str:
    """Return the document of a chunk: what stands before the last ``#``; the whole id where there is none."""
    return chunk_id.rpartition("#")[0] or chunk_id


def place_documents(chunk_ids: Sequence[str]) -> list[str]:
    """Return a ranking of documents as long as the ranking of chunks.

    The choice: the rank of a document is the rank of its first hit, and **hits keep their places**. A later hit of the
    same document becomes a placeholder that is unique and matches no document. The other choice, to close the gaps,
    would flatter: k hits fill k places of a prompt, and a document that only the seventh hit brings is not among the
    top 5, though the six hits before it came from one document.
    """
    placed: dict[str, None] = {}
    for rank, chunk_id in enumerate(chunk_ids, start=1):
        document = document_of(chunk_id)
        placed[document if document not in placed else f"\0hit {rank}"] = None
    return list(placed)
