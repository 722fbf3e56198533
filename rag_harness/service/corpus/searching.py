"""The retrieve step over one state of a collection: the cuts are known, and the index may change meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Protocol

from rag_harness.files.log import log
from rag_harness.models.embedders.cached import CachedEmbedder
from rag_harness.protocols import Index, LexicalIndex
from rag_harness.retrieval.duplicates import duplicates
from rag_harness.retrieval.indexes.live import LivePoints
from rag_harness.retrieval.live_words import LiveWords
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.service.corpus.contents import Contents
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.settings import Settings
from rag_harness.types import Chunk, Hit, IndexSpec, Matrix, Vector


class Searched(Protocol):
    """An index that is searched while it changes."""

    points: LivePoints
    words: Mapping[int, LiveWords]
    stores: CollectionStores


class LiveRetrieval(Retrieval):
    """Retrieves from one state of a collection.

    Args:
        number: the number of this way of searching: which cuts of each document it has.
        contents: the state.
        lasting: index and words of the collection, which all its states share.
        of: has the chunks that are rewritten here; None if chunks are found by their own texts.
    """

    def __init__(
        self,
        spec: IndexSpec,
        number: int,
        contents: Contents,
        lasting: Searched,
        settings: Settings,
        embedder: CachedEmbedder,
        of: LiveRetrieval | None = None,
    ) -> None:
        super().__init__(spec, lambda: contents.documents, settings, lasting.stores, embedder)
        self.number: int = number
        self._contents, self._points, self._words, self._of = contents, lasting.points, lasting.words[number], of

    @cached_property
    def cut(self) -> list[Chunk]:
        """All chunks, as they were cut when their documents came."""
        return [chunk for held in self._contents.held for chunk in held.cuts[self.number].chunks]

    @cached_property
    def left_out(self) -> list[Chunk]:
        """The chunks that are near-duplicates of an earlier document's, if the settings leave such chunks out."""
        if self._of is not None:
            gone = {chunk.chunk_id for chunk in self._of.left_out}
            return [chunk for chunk in self.cut if chunk.chunk_id in gone]
        least = self.settings.near_duplicates
        return [each.chunk for each in duplicates(self.cut, least, self.stores)] if least else []

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks that can be found."""
        gone = {chunk.chunk_id for chunk in self.left_out}
        return [chunk for chunk in self.cut if chunk.chunk_id not in gone] if gone else self.cut

    @cached_property
    def indexed(self) -> list[Chunk]:
        """What the index can find, in the order of ``places``."""
        return [chunk for _, chunk in self._found_as]

    @cached_property
    def index(self) -> Index:
        """The part of the index that belongs to this state."""
        return LiveIndex(self._points, [point for point, _ in self._found_as], self.indexed)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the chunks of this state."""
        return self._words.view(self.chunks)

    @cached_property
    def _found_as(self) -> list[tuple[int, Chunk]]:
        gone = {chunk.chunk_id for chunk in self.left_out}
        pairs = [pair for held in self._contents.held for pair in held.found_as(self.number)]
        return [(point, chunk) for point, chunk in pairs if not gone or _owner(chunk, gone) is None]

    @property
    def is_dense(self) -> bool:
        """Whether the experiment retrieves by the vector of a question."""
        return "_dense" in self.__dict__

    def warm(self) -> None:
        """Make everything that needs all chunks, so that no question waits for it."""
        _ = self.index, self.content_digest, self.dense, self.words
        if self.spec.windows:
            _ = self.chunk_of_window
        self.lexical.search("", 1)
        log.debug("%d chunks can be found", len(self.chunks))

    @contextmanager
    def building(self) -> Iterator[None]:
        """Do nothing: nothing is built for other processes, and nothing that a question needed is written."""
        yield


def _owner(chunk: Chunk, among: set[str]) -> str | None:
    """Return the chunk ``among`` these that is this one, or that this one is a window of."""
    name = chunk.chunk_id
    return next((each for each in (name, name.rpartition("~")[0]) if each in among), None)


class LiveIndex:
    """Finds the points of one state. Points that were added or removed since are ignored.

    Args:
        points: the index.
        ids: the number of each chunk in it.
        chunks: the chunks that can be found, in the order of ``ids``.
    """

    def __init__(self, points: LivePoints, ids: Sequence[int], chunks: Sequence[Chunk]) -> None:
        self._points, self._chunks = points, chunks
        self._place = {point: place for place, point in enumerate(ids)}

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Refuse: chunks come into a collection only with a document that is ingested."""
        raise NotImplementedError("documents of a collection are ingested")

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine. Equal scores come in the order of the chunks."""
        if not self._chunks:
            return []
        wanted = k + 1
        while True:
            found = self._points.nearest(vector, wanted)
            known = [(score, self._place[point]) for score, point in found if point in self._place]
            if len(found) < wanted or self._enough(known, found[-1][0], k):
                break
            wanted *= 4
        best = sorted(known, key=lambda each: (-each[0], each[1]))[:k]
        return [Hit(self._chunks[place], score, rank) for rank, (score, place) in enumerate(best, 1)]

    def _enough(self, known: Sequence[tuple[float, int]], last: float, k: int) -> bool:
        """Whether no further point can be among the best ``k``: the engine may cut between equal scores."""
        return len(known) == len(self._chunks) or (len(known) >= k and known[k - 1][0] > last)

    def __len__(self) -> int:
        return len(self._chunks)
