"""``fixed``: chunks of as many words as fit, with overlap. Headings, paragraphs and sentences do not count."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.balance import one_section
from rag_harness.retrieval.chunking.heading_places import HeadingPlaces
from rag_harness.retrieval.chunking.heading_sections import NEWLINE, HeadingSection, MarkdownBlock, read_sections
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.retrieval.chunking.packing import Packer
from rag_harness.types import Chunk, Document

_WORD = re.compile(r"\S+\s*")


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page every ``max_tokens`` tokens, between words. Code and tables are cut between lines that fit.

    Each chunk repeats up to ``overlap`` tokens of the one before. A chunk's section is that of its first character.

    Raises:
        ChunkTooLongError: a single character is longer than ``max_tokens``.
    """
    sections = read_sections(document.text)
    if not sections:
        return []
    page = one_section(sections)
    words = tuple(word for block in _blocks(page) for word in _words(document.text, block))
    packer = Packer(document.doc_id, document.text, tokenizer, settings.max_tokens, settings.overlap)
    places = HeadingPlaces(document)
    return [places.chunk(index, piece) for index, piece in enumerate(packer.pieces([HeadingSection((), None, words)]))]


def _blocks(page: HeadingSection) -> Iterator[MarkdownBlock]:
    yield from (page.titles,) if page.titles else ()
    yield from page.blocks


def _words(text: str, block: MarkdownBlock) -> Iterator[MarkdownBlock]:
    if block.code or block.header:
        ends = [*(match.end() for match in NEWLINE.finditer(text, block.start, block.end)), block.end]
        pairs = pairwise(dict.fromkeys([block.start, *ends]))
        yield from (MarkdownBlock(start, end, code=True) for start, end in pairs)
    else:
        yield from (MarkdownBlock(match.start(), match.end()) for match in _WORD.finditer(text, block.start, block.end))
