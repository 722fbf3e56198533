"""``whole``: each document is one chunk of any length, for collections that are measured without chunking."""

from __future__ import annotations

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.types import Chunk, Document


def chunk_document(document: Document, _tokenizer: Tokenizer, _settings: ChunkingSettings) -> list[Chunk]:
    """Return the document as a single chunk."""
    whole = f"{document.doc_id}#whole"
    return [Chunk(whole, document.doc_id, document.text, 0, len(document.text), metadata=document.metadata)]
