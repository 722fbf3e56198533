"""``sections``: a Markdown page is cut by headings, then by blocks. No chunk is longer than the embedder reads."""

from __future__ import annotations

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.heading_sections import read_sections
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.retrieval.chunking.packing import Packer, Piece
from rag_harness.types import Chunk, Document


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one Markdown page into chunks, in the order of the page. A page without text gives none.

    Every non-blank character after the front matter is in at least one chunk. ``start`` and ``end`` count characters of
    ``document.text``.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    sections = read_sections(document.text)
    packer = Packer(document.doc_id, document.text, tokenizer, settings.max_tokens, settings.overlap)
    return [_chunk(document, index, piece) for index, piece in enumerate(packer.pieces(sections))]


def _chunk(document: Document, index: int, piece: Piece) -> Chunk:
    return Chunk(
        chunk_id=f"{document.doc_id}#chunk_{index}",
        doc_id=document.doc_id,
        text=piece.repeated_header + document.text[piece.start : piece.end],
        start=piece.start,
        end=piece.end,
        section=piece.section,
        index=index,
        repeated_header=piece.repeated_header,
        metadata=document.metadata,
    )
