"""The index on a Qdrant server or cluster, by its client; or the client's memory mode, where Edge has no wheel.

It was not tested with a server: TLS, rights of a key, sharding and replicas of a cluster, a crash of the server.
Requests are tested: a stub of the REST API validates them against the client's own models.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rag_harness.errors import CriticalError
from rag_harness.files.log import log
from rag_harness.protocols import RetrievalParts
from rag_harness.retrieval.indexes.server.claiming import CollectionClaim
from rag_harness.retrieval.indexes.server.connection import speaking
from rag_harness.retrieval.indexes.server.filling import Filling, fill
from rag_harness.retrieval.indexes.server.lease import Clock, Lease
from rag_harness.retrieval.indexes.server.ledger import CollectionLedger
from rag_harness.retrieval.indexes.server.points import point_id
from rag_harness.retrieval.indexes.server.search import ScoredIds, nearest
from rag_harness.retrieval.indexes.server.server_collection import CollectionContent, ServerCollection, collection_for
from rag_harness.types import Chunk, Hit, Matrix, Vector

LOOKS_EACH = 30.0
"""Seconds between two checks whether another run is changing the collection."""


class QdrantIndex:
    """One collection with cosine distance. Each point is a chunk, with text and metadata as payload.

    Args:
        collection: the collection. On a server its name has the digest of the content, so a complete one with this
            name has the same chunks and vectors and is not built again.
        content: its content; ``open`` and ``upsert`` set the number of chunks.
        overwrite: whether to write all points again if another run has written them, in place, during searches.
        clock: the clock for waits and checks.
    """

    def __init__(
        self,
        collection: ServerCollection,
        content: CollectionContent,
        overwrite: bool = False,
        clock: Clock | None = None,
    ):
        self._collection, self._content, self._overwrite = collection, content, overwrite
        self._clock = clock or Clock()
        self._ledger = CollectionLedger(collection.client, collection.cluster.replicas)
        self._lease: Lease | None = None
        self._pinned = ""
        self._looked = 0.0
        self._chunks: list[Chunk] = []
        self._positions: dict[str, int] = {}

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the server has a complete collection of these chunks; if so, searches use it.

        If there is none, this process holds the lease when this returns. It first waits for another run that is making
        the collection.
        """
        with self._speaking("does not answer"):
            self._take(chunks)
            self._lease = self._acquired()
            if self._lease is None:
                self._pin()
            else:
                # If embedding fails, the lease is released, so that others need not wait for this process to end.
                weakref.finalize(self, self._lease.give_back)
        return self._lease is None

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Store the chunks, unless a complete collection of that name exists."""
        with self._speaking("cannot be built"):
            self._take(chunks, vectors)
            self._lease = self._lease or self._acquired()
            if self._lease is not None:
                try:
                    filling = Filling(self._content, self._chunks, vectors, self._overwrite)
                    fill(self._collection, filling, self._lease, self._clock)
                finally:
                    self._lease.give_back()
                    self._lease = None
            self._pin()
        log.info("Indexed %d chunks (collection %s)", len(chunks), self._collection.name)

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine, exact unless the settings ask for a graph.

        Ties are in the order of the chunks."""
        return self.search_many([vector], k)[0]

    def search_many(self, vectors: Sequence[Vector], k: int) -> list[list[Hit]]:
        """Return the ``k`` nearest chunks of each vector, in one request."""
        with self._speaking("does not answer"):
            self._look()
            found = nearest(self._collection, vectors, k, len(self._chunks))
            return [self._hits(each, k) for each in found]

    def __len__(self) -> int:
        return len(self._chunks)

    def close(self) -> None:
        """Release the collection and close the connection."""
        if self._lease is not None:
            self._lease.give_back()
        self._collection.client.close()

    def _take(self, chunks: Sequence[Chunk], vectors: Matrix | None = None) -> None:
        self._chunks = list(chunks)
        self._positions = {point_id(chunk): position for position, chunk in enumerate(self._chunks)}
        dimension = 0 if vectors is None else int(vectors.shape[1])
        self._content = replace(self._content, chunks=len(self._positions), dimension=dimension)

    def _acquired(self) -> Lease | None:
        """Return the lease, before vectors are paid for; None where nothing is left to write."""
        return CollectionClaim(self._collection, self._content, self._ledger, self._overwrite, self._clock).acquired()

    def _pin(self) -> None:
        there = self._ledger.read(self._collection.name)
        self._pinned, self._looked = there.holder if there else "", self._clock.now()

    def _look(self) -> None:
        """Check from time to time that the collection has not changed."""
        if not self._collection.url or self._clock.now() - self._looked < LOOKS_EACH:
            return
        self._looked = self._clock.now()
        there = self._ledger.read(self._collection.name)
        if self._pinned != (there.holder if there else ""):
            who = f"{there.who}, {there.heard}" if there else "nobody knows who"
            raise CriticalError(
                f"Collection {self._collection.name} at {self._collection.url} was changed while this run searched it "
                f"({who}): what was found before and after is not of one index. Run again when that is over."
            )

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
    return QdrantIndex(collection_for(settings, parts.content_digest), content, settings.overwrite)
