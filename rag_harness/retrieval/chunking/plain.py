"""``plain``: the chunks of ``sections`` without Markdown, for measuring the value of the markup."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from typing import Any

from rag_harness.protocols import Tokenizer
from rag_harness.retrieval.chunking.heading_sections import NEWLINE, MarkdownBlock, body_start, read_sections
from rag_harness.retrieval.chunking.lengths import ChunkingSettings
from rag_harness.retrieval.chunking.sections import chunk_document as cut_by_sections
from rag_harness.retrieval.chunking.unmarked import references_of, unmarked
from rag_harness.types import UNMARKED, Chunk, Document


def chunk_document(document: Document, tokenizer: Tokenizer, settings: ChunkingSettings) -> list[Chunk]:
    """Cut one page where ``sections`` cuts it, and return the words of each chunk; errors as in ``sections``.

    Ids and places are those of ``sections``: ``start`` and ``end`` are the place of the text with markup. A chunk of
    only markup keeps it. ``markup`` in the metadata says that markup was removed; a quote of the page is then searched
    for without markup, too.
    """
    chunks = cut_by_sections(document, tokenizer, settings)
    code = [block for section in read_sections(document.text) for block in section.blocks if block.code]
    starts = [block.start for block in code]
    around = [code[max(0, bisect_left(starts, chunk.start) - 1)] if code else None for chunk in chunks]
    references = references_of(document.text[body_start(document.text) :])
    return [
        _plain(chunk, _opener(document.text, block, chunk.start), references)
        for chunk, block in zip(chunks, around, strict=True)
    ]


def _plain(chunk: Chunk, opener: str, references: dict[str, Any]) -> Chunk:
    text = unmarked(f"{opener}{chunk.text}", references).strip()
    own = {**chunk.metadata, "markup": UNMARKED}
    return replace(chunk, text=text or chunk.text, repeated_header="", metadata=own)


def _opener(text: str, before: MarkdownBlock | None, start: int) -> str:
    """Return the line that opens the fence around a chunk's beginning. Without it, code would be read as prose.

    ``before`` is the last code block that begins before ``start``, or the first of the page.
    """
    is_inside = before is not None and before.start < start < before.end
    first = NEWLINE.split(text[before.start : before.end].lstrip(), 1)[0] if before and is_inside else ""
    return f"{first}\n" if first.startswith(("```", "~~~")) else ""
