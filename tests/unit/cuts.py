"""What holds of the chunks of every page, whichever chunker cut it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise

from rag_harness.core.protocols import Tokenizer
from rag_harness.core.registry import resolve
from rag_harness.core.types import Chunk, Document
from rag_harness.retrieval.chunking import ChunkingSettings
from tests.unit.retrieval.chunking.test_chunking import Words, assert_covers

FRONT = "---\ntitle: Sensors\nmodule: 2\nmodule_title: Seeing\nchapter: 3\nurl: /module-2/chapter-3\n---\n\n"


def cut(chunker: str, text: str, settings: ChunkingSettings, tokenizer: Tokenizer | None = None) -> list[Chunk]:
    """Cut a page and check what holds for every page."""
    tokenizer = tokenizer or Words()
    document = Document("page.md", text, "Page", {"topic": "x"})
    chunks: list[Chunk] = resolve("chunkers", chunker)(document, tokenizer, settings)
    assert_sound(document, chunks)
    assert max(tokenizer.count([chunk.text for chunk in chunks]), default=0) <= settings.max_tokens
    return chunks


def assert_sound(document: Document, chunks: Sequence[Chunk]) -> None:
    for index, chunk in enumerate(chunks):
        span = document.text[chunk.start : chunk.end]
        assert chunk.text == chunk.repeated_header + span
        assert span
        assert span == span.strip()
        assert (chunk.chunk_id, chunk.index, chunk.doc_id) == (f"page.md#chunk_{index}", index, "page.md")
        assert chunk.metadata["topic"] == "x"
        assert json.loads(json.dumps(chunk.metadata)) == chunk.metadata, "a recorded cut has other metadata"
    assert all(one.start < other.start and one.end < other.end for one, other in pairwise(chunks))


def assert_keeps_all(text: str, chunks: Sequence[Chunk], body: int) -> None:
    assert_covers(text, chunks, body)


def assert_no_row_is_cut(text: str, chunks: Sequence[Chunk]) -> None:
    for chunk in chunks:
        before = text[: chunk.start].rpartition("\n")[2]
        behind = text[chunk.end :].partition("\n")[0]
        assert "|" not in before, f"{chunk.chunk_id} starts inside a row: {before!r}"
        assert "|" not in behind, f"{chunk.chunk_id} ends inside a row: {behind!r}"


def words(count: int, word: str = "word") -> str:
    """Return ``count`` tokens of the tests' tokenizer in sentences of ten."""
    return " ".join(f"{word[:-1]}." if number % 10 == 9 else word for number in range(count))
