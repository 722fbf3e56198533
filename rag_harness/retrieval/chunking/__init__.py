"""Chunkers: one in each file, found under the entry point ``rag_harness.chunkers``.

A chunker is a function ``chunk_document(document, tokenizer, settings) -> list[Chunk]``, registered by its name:
``slides = my_package.slides:chunk_document``. A chunk's index counts within its document; its id is unique.
"""

from __future__ import annotations

from collections.abc import Callable

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.types import Chunk, Document

Chunker = Callable[[Document, Tokenizer, ChunkingSettings], list[Chunk]]
"""Cuts a document into chunks; what a chunker of your own is."""

__all__ = ["Chunker", "ChunkingSettings"]
