"""Stored cuts of pages. The chunker and the tokenizer are needed only for new pages."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rag_harness.errors import PrerequisiteError, UnreadableError
from rag_harness.models.recording.store import key_of
from rag_harness.protocols import Store, Tokenizer
from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
from rag_harness.retrieval.cutting import Cutting
from rag_harness.types import Chunk, Document


class RecordedCuts:
    """Cuts pages, and stores the cuts of a page under its text.

    Args:
        store: the store of cuts, for one chunker, tokenizer and pair of lengths.
        chunker: returns the chunker, for new pages.
        settings: longest chunk and overlap.
        tokenizer: makes the model's tokenizer, for new pages.

    Attributes:
        refused: the reason for each page that passes a limit, by id. These pages have no chunks.
    """

    def __init__(
        self,
        store: Store,
        chunker: Callable[[], Chunker],
        settings: ChunkingSettings,
        tokenizer: Callable[[], Tokenizer],
    ) -> None:
        self._store, self._chunker, self._settings, self._tokenizer = store, chunker, settings, tokenizer
        self.refused: dict[str, str] = {}

    def chunks(self, documents: Sequence[Document]) -> list[Chunk]:
        """Return the chunks of all pages, in order."""
        keys = [key_of(document.doc_id, document.text) for document in documents]
        kept = self._store.get(keys)
        new = {key: document for key, document, cuts in zip(keys, documents, kept, strict=True) if cuts is None}
        fresh = self._cut(new)
        return [
            chunk
            for key, document, cuts in zip(keys, documents, kept, strict=True)
            for chunk in chunks_from(document, fresh.get(key, []) if cuts is None else json.loads(cuts.tobytes()))
        ]

    def _cut(self, new: dict[bytes, Document]) -> dict[bytes, list[Any]]:
        if not new:
            return {}
        tokenizer, keep = self._tokenizer_or_guess()
        cutting = Cutting(self._chunker(), tokenizer, self._settings, cuts_of)
        fresh: dict[bytes, list[Any]] = {}
        try:
            for key, page in new.items():
                try:
                    fresh[key] = cutting.cuts(page)
                except UnreadableError as error:
                    self.refused[page.doc_id] = str(error)
        finally:
            cutting.close()
        if keep:
            self._store.put({key: _bytes(cuts) for key, cuts in fresh.items()})
        return fresh

    def _tokenizer_or_guess(self) -> tuple[Tokenizer, bool]:
        """Return the tokenizer, or a rough one without it. A rough cut is enough to name the chunk without a vector."""
        try:
            return self._tokenizer(), True
        except PrerequisiteError:
            return _Guess(), False


class _Guess:
    def count(self, texts: Sequence[str]) -> list[int]:
        return [2 + len(re.findall(r"\w{1,5}|[^\w\s]", text)) for text in texts]


def cuts_of(page: Document, chunks: Sequence[Chunk]) -> list[Any]:
    """Return the chunks as plain JSON for ``chunks_from``, without text that the page has."""
    return [_cut_of(page, chunk) for chunk in chunks]


def _cut_of(page: Document, chunk: Chunk) -> list[Any]:
    """Return id, place and section of a chunk, and its text if the page does not have it at that place."""
    name = chunk.chunk_id.removeprefix(f"{page.doc_id}#")
    there = chunk.repeated_header + page.text[chunk.start : chunk.end] == chunk.text
    own = {key: value for key, value in chunk.metadata.items() if page.metadata.get(key) != value}
    text = None if there else chunk.text
    return [name, chunk.start, chunk.end, chunk.repeated_header, list(chunk.section), text, own]


def _bytes(cuts: list[Any]) -> np.ndarray:
    return np.frombuffer(json.dumps(cuts).encode(), dtype=np.uint8).reshape(-1, 1)


def chunks_from(document: Document, cuts: list[Any]) -> list[Chunk]:
    """Return the chunks of a page from the JSON of ``cuts_of``."""
    return [
        Chunk(
            chunk_id=f"{document.doc_id}#{name}",
            doc_id=document.doc_id,
            text=header + document.text[start:end] if text is None else text,
            start=start,
            end=end,
            section=tuple(section),
            index=index,
            repeated_header=header,
            metadata={**document.metadata, **own} if own else document.metadata,
            pages=_pages(document, start, end),
        )
        for index, (name, start, end, header, section, text, own) in enumerate(cuts)
    ]


def _pages(document: Document, start: int, end: int) -> tuple[int, int] | None:
    """Return the first and the last page with text between two offsets. Blanks are no text."""
    if not document.pages:
        return None
    text = document.text[start:end]
    first, last = start + len(text) - len(text.lstrip()), start + len(text.rstrip()) - 1
    begins = bisect_right(document.pages, first if first <= last else start)
    return begins, max(begins, bisect_right(document.pages, last))
