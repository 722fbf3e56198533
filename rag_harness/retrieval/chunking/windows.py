"""Windows of a chunk that is longer than the embedder reads. No registered chunker: its documents are chunks."""

from __future__ import annotations

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.balance import Balancer
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.retrieval.chunking.markdown import Block, Section
from rag_harness.types import Chunk, Document


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut a text at ends of sentences, else of lines, into windows that overlap; one that fits is its own only window.

    The last window is no shorter than ``least`` where that can be had: a lone sentence would score by itself. Offsets
    count characters of ``document.text``.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    text = document.text
    balancer = Balancer(document, tokenizer, settings)
    pieces = balancer.pieces(Section((), None, (Block(0, len(text)),))) if text.strip() else []
    if len(pieces) < 2:
        return [Chunk(f"{document.doc_id}#0", document.doc_id, text, 0, len(text))]
    return [
        Chunk(f"{document.doc_id}#{number}", document.doc_id, text[piece.start : piece.end], piece.start, piece.end)
        for number, piece in enumerate(pieces)
    ]
