"""``sliding``: long, overlapping chunks of a page's paragraphs. Headings do not count."""

from __future__ import annotations

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.balance import Balancer, one_section
from rag_harness.retrieval.chunking.heading_places import HeadingPlaces
from rag_harness.retrieval.chunking.heading_sections import read_sections
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.types import Chunk, Document


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page at the borders of its blocks, into ``least`` to ``max_tokens``. A shorter page is one chunk.

    Each chunk repeats up to ``overlap`` tokens of the one before. A chunk's section is that of its first character.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    sections = read_sections(document.text)
    if not sections:
        return []
    pieces = Balancer(document, tokenizer, settings).pieces(one_section(sections))
    places = HeadingPlaces(document)
    return [places.chunk(index, piece) for index, piece in enumerate(pieces)]
