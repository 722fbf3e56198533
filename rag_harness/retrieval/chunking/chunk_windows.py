"""Windows of a chunk that is longer than the embedder reads. It is not registered: its documents are chunks."""

from __future__ import annotations

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.balance import Balancer
from rag_harness.retrieval.chunking.heading_sections import HeadingSection, MarkdownBlock
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.types import Chunk, Document


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut a text into overlapping windows, at ends of sentences, else of lines. A text that fits is its only window.

    The last window has at least ``least`` tokens where possible, because a single sentence would score differently.
    Offsets count characters of ``document.text``.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    text = document.text
    balancer = Balancer(document, tokenizer, settings)
    pieces = balancer.pieces(HeadingSection((), None, (MarkdownBlock(0, len(text)),))) if text.strip() else []
    if len(pieces) < 2:
        return [Chunk(f"{document.doc_id}#0", document.doc_id, text, 0, len(text))]
    return [
        Chunk(f"{document.doc_id}#{number}", document.doc_id, text[piece.start : piece.end], piece.start, piece.end)
        for number, piece in enumerate(pieces)
    ]
