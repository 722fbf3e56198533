"""Chunking of documents: the protocol of chunkers, and the lengths of chunks.

A chunker is a function ``chunk_document(document, tokenizer, settings) -> list[Chunk]`` under the entry point
``rag_harness.chunkers``: ``slides = my_package.slides:chunk_document``. A chunk's index counts within its document;
its id is unique. ``retrieval.ingest`` calls chunkers. They search nothing. Begin reading with ``chunkers.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rag_harness.core.errors import SettingsError
from rag_harness.core.protocols import Tokenizer
from rag_harness.core.types import Chunk, Document

__all__ = ["Chunker", "ChunkingSettings"]


@dataclass(frozen=True, slots=True)
class ChunkingSettings:
    """Lengths for cutting documents, in tokens of the embedder, special tokens included.

    Args:
        max_tokens: longest chunk.
        overlap: most tokens that a piece of a long section repeats from the piece before, without a repeated table
            header.
        least: fewest tokens of a chunk, for chunkers that join shorter ones. Others ignore it.

    Raises:
        SettingsError: not ``0 <= overlap < max_tokens``, or not ``0 <= least <= max_tokens``.
    """

    max_tokens: int = 512
    overlap: int = 128
    least: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens <= 0:
            raise SettingsError(f"max_tokens is {self.max_tokens}, but a chunk holds at least 1 token.")
        if not 0 <= self.overlap < self.max_tokens:
            raise SettingsError(
                f"overlap is {self.overlap}, but must be 0 or more and less than max_tokens {self.max_tokens}."
            )
        if not 0 <= self.least <= self.max_tokens:
            raise SettingsError(
                f"least is {self.least}, but must be 0 or more and no more than max_tokens {self.max_tokens}."
            )


Chunker = Callable[[Document, Tokenizer, ChunkingSettings], list[Chunk]]
"""Cuts a document into chunks; what a chunker of your own is."""
