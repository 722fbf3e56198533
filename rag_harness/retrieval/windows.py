"""Windows of chunks that are longer than the embedder reads. The index has windows; retrieval returns chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Protocol

from rag_harness.protocols import Embedder, Index, Stores
from rag_harness.registry.revisions import REVISIONS
from rag_harness.retrieval.chunking import ChunkingSettings, chunk_windows
from rag_harness.retrieval.cuts import RecordedCuts
from rag_harness.retrieval.retrievers import searched_together
from rag_harness.types import Chunk, Document, Hit

QUARTER = 4
"""A window repeats up to a quarter of the one before, so that text at a border has its context in one window. Where
possible, no window is shorter than a quarter."""


def source() -> str:
    """Return the revision of how windows are cut."""
    return REVISIONS["chunkers/windows"]


def windows_of(chunks: Sequence[Chunk], embedder: Embedder, stores: Stores) -> list[Chunk]:
    """Return the windows of all chunks, in order, with ids ``<chunk_id>~<n>``, n from 0.

    A chunk that fits is its only window, with its own id.
    """
    quarter = embedder.max_tokens // QUARTER
    lengths = ChunkingSettings(embedder.max_tokens, quarter, quarter)
    named = f"windows-{lengths.max_tokens}-{lengths.overlap}-{source()}"
    store = stores.open("chunks", embedder.model, named)
    cuts = RecordedCuts(store, lambda: chunk_windows.chunk_document, lengths, embedder.tokenizer)
    read = cuts.chunks([Document(chunk.chunk_id, chunk.text, "") for chunk in chunks])
    by_chunk = groupby(read, key=lambda window: window.doc_id)
    return [named for chunk, (_, parts) in zip(chunks, by_chunk, strict=True) for named in _named(chunk, list(parts))]


def chunk_of_window(chunks: Sequence[Chunk], windows: Sequence[Chunk]) -> dict[str, Chunk]:
    """Return the chunk of each window, by the window's id."""
    own = {chunk.chunk_id: chunk for chunk in chunks}
    return {name: own.get(name) or own[name.rpartition("~")[0]] for name in (each.chunk_id for each in windows)}


def _named(chunk: Chunk, windows: Sequence[Chunk]) -> Iterator[Chunk]:
    if len(windows) == 1:
        yield chunk
        return
    for number, window in enumerate(windows):
        # A repeated header is before the page's own text. Offsets in the page count from after the header.
        start = chunk.start + window.start - len(chunk.repeated_header)
        end = start + len(window.text)
        yield replace(
            chunk,
            chunk_id=f"{chunk.chunk_id}~{number}",
            text=window.text,
            start=max(chunk.start, start),
            end=max(chunk.start, end),
            repeated_header=chunk.repeated_header[window.start : window.end],
        )


class Windowed(Protocol):
    """The parts for searching chunks by their windows."""

    @property
    def embedder(self) -> Embedder:
        """The embedder of the index."""
        ...

    @property
    def index(self) -> Index:
        """The vector index of the windows."""
        ...

    @property
    def chunk_of_window(self) -> Mapping[str, Chunk]:
        """The chunk of each window, by the window's id."""
        ...


@dataclass(frozen=True)
class WindowedRetriever:
    """Finds whole chunks by their nearest windows, by cosine. A chunk has the score of its best window."""

    over: Windowed

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.retrieve_many([(query, k)])[0]

    def retrieve_many(self, requests: Sequence[tuple[str, int]]) -> list[list[Hit]]:
        """Return the hits of each query and k. An index behind a network gets one first request for all."""
        index = self.over.index
        vectors = list(self.over.embedder.embed_queries([query for query, _ in requests]))
        first = searched_together(index, vectors, [_first_depth(k) for _, k in requests])

        def search(number: int, depth: int) -> Sequence[Hit]:
            known = depth == _first_depth(requests[number][1])
            return first[number] if known else index.search(vectors[number], depth)

        return [folded_windows(partial(search, n), self.over.chunk_of_window, k) for n, (_, k) in enumerate(requests)]


def _first_depth(k: int) -> int:
    return 2 * k


def folded_windows(search: Callable[[int], Sequence[Hit]], chunk_of: Mapping[str, Chunk], k: int) -> list[Hit]:
    """Return the ``k`` chunks whose best windows score highest; fewer only if there are fewer chunks.

    ``search(depth)`` gives the best windows. The depth grows until they contain ``k`` chunks.
    """
    depth = _first_depth(k)
    while True:
        windows = search(depth)
        best: dict[str, Hit] = {}
        for hit in windows:
            chunk = chunk_of[hit.chunk.chunk_id]
            best.setdefault(chunk.chunk_id, replace(hit, chunk=chunk))
        if len(best) >= k or len(windows) < depth:
            return [replace(hit, rank=rank) for rank, hit in enumerate(list(best.values())[:k], 1)]
        depth *= 2
