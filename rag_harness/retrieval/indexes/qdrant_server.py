"""The index on a Qdrant server or cluster, by its client; or the client's memory mode.

It was not tested with a server: TLS, rights of a key, sharding and replicas of a cluster, a crash of the server.
Requests are tested: a stub of the REST API validates them against the client's own models.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rag_harness.files.log import log
from rag_harness.protocols import RetrievalParts
from rag_harness.retrieval.indexes.server.connection import speaking
from rag_harness.retrieval.indexes.server.filling import fill, is_complete
from rag_harness.retrieval.indexes.server.health import Clock, check_server
from rag_harness.retrieval.indexes.server.points import point_id
from rag_harness.retrieval.indexes.server.search import ScoredIds, nearest
from rag_harness.retrieval.indexes.server.server_collection import CollectionContent, ServerCollection, collection_for
from rag_harness.types import Chunk, Hit, Matrix, Vector


class QdrantIndex:
    """One collection with cosine distance. Each point is a chunk, with text and metadata as payload.

    Args:
        collection: the collection. On a server its name has the digest of the content, so a complete one with this
            name has the same chunks and vectors and is not built again.
        content: its content; ``open`` and ``upsert`` set the number of chunks.
        clock: the clock for waits.
    """

    def __init__(self, collection: ServerCollection, content: CollectionContent, clock: Clock | None = None):
        self._collection, self._content = collection, content
        self._clock = clock or Clock()
        self._chunks: list[Chunk] = []
        self._positions: dict[str, int] = {}

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the server has a complete collection of these chunks; if so, searches use it.

        Raises:
            CriticalError: the server is unfit, or the collection has other content.
        """
        with self._speaking("does not answer"):
            self._take(chunks)
            check_server(self._collection)
            return is_complete(self._collection, self._content)

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Store the chunks, unless a complete collection of that name exists."""
        with self._speaking("cannot be built"):
            self._take(chunks, vectors)
            check_server(self._collection)
            if not is_complete(self._collection, self._content):
                fill(self._collection, self._content, self._chunks, vectors, self._clock)
        log.info("Indexed %d chunks (collection %s)", len(chunks), self._collection.name)

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine, exact unless the settings ask for a graph.

        Ties are in the order of the chunks."""
        return self.search_many([vector], k)[0]

    def search_many(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        """Return the ``k`` nearest chunks of each vector, in one request."""
        with self._speaking("does not answer"):
            found = nearest(self._collection, vectors, k, len(self._chunks))
            return [self._hits(each, k) for each in found]

    def __len__(self) -> int:
        return len(self._chunks)

    def close(self) -> None:
        """Close the connection."""
        self._collection.client.close()

    def _take(self, chunks: Sequence[Chunk], vectors: Matrix | None = None) -> None:
        self._chunks = list(chunks)
        model = self._content.model
        self._positions = {point_id(chunk, model): position for position, chunk in enumerate(self._chunks)}
        dimension = 0 if vectors is None else int(vectors.shape[1])
        self._content = replace(self._content, chunks=len(self._positions), dimension=dimension)

    def _hits(self, found: ScoredIds, k: int) -> list[Hit]:
        placed = [(score, self._positions[name]) for score, name in found]
        best = sorted(placed, key=lambda point: (-point[0], point[1]))[:k]
        return [Hit(self._chunks[position], float(score), n) for n, (score, position) in enumerate(best, 1)]

    def _speaking(self, what: str) -> Any:
        return speaking(what, self._collection.url)


def create(parts: RetrievalParts) -> QdrantIndex:
    """Return the index of the settings for the content digest.

    Raises:
        SettingsError: the URL is invalid, the key would be sent in clear, or an option has a wrong value.
    """
    settings, embedder = parts.settings, parts.embedder
    content = CollectionContent(parts.content_digest, f"{embedder.model}@{embedder.revision}", 0)
    return QdrantIndex(collection_for(settings, parts.content_digest), content)
