"""Indexes on a Qdrant server or cluster, fixed or changing, and their searches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from rag_harness.core.log import log
from rag_harness.core.protocols import RetrievalParts
from rag_harness.core.types import Chunk, Hit, Matrix, Vector
from rag_harness.retrieval.indexes import LiveIndexError
from rag_harness.retrieval.indexes.server_collection import (
    Clock,
    CollectionContent,
    ServerCollection,
    check_server,
    collection_for,
    fill,
    is_complete,
    point_id,
)
from rag_harness.retrieval.indexes.server_connection import connect, quiet, speaking

# Like the index below it is tested in memory mode and with a stub that validates requests, but never with a server.

_BATCH = 256
_RETRIES = 3
_PAGE = 1_000


class ServerPoints:
    """One collection of a server. It is created with the first points.

    Args:
        client: the server's client.
        collection: the name of the collection.
        params: parameters of a search. The memory mode is always exact, and warns about parameters.
    """

    def __init__(self, client: Any, collection: str, params: Any = None) -> None:
        self._client, self._collection, self._params = client, collection, params
        with _speaking():
            self._there = bool(client.collection_exists(collection))

    @classmethod
    def at(cls, url: str, api_key: str, collection: str) -> ServerPoints:
        """Return the collection of the server at ``url``; an empty ``url`` is the memory mode."""
        return cls(connect(url, api_key), collection, _exact() if url else None)

    def add(self, ids: Sequence[int], vectors: Matrix) -> None:
        """Add points. They are written when this returns."""
        from qdrant_client.models import PointStruct

        if not len(ids):
            return
        with _speaking(), quiet():
            self._make(vectors.shape[1])
            points = (PointStruct(id=n, vector=row.tolist()) for n, row in zip(ids, vectors, strict=True))
            self._client.upload_points(self._collection, points, batch_size=_BATCH, max_retries=_RETRIES, wait=True)

    def remove(self, ids: Sequence[int]) -> None:
        """Remove points. They are removed when this returns."""
        from qdrant_client.models import PointIdsList

        if self._there and ids:
            with _speaking():
                self._client.delete(self._collection, PointIdsList(points=list(ids)), wait=True)

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:
        """Return the nearest points, by exact search."""
        if not self._there:
            return []
        with _speaking(), quiet():
            points = self._client.query_points(
                self._collection, query=vector, limit=limit, search_params=self._params, with_payload=False
            ).points
        return [(float(point.score), int(point.id)) for point in points]

    def ids(self) -> set[int]:
        """Return the numbers of all points, page by page."""
        found: set[int] = set()
        after: Any = None
        while self._there:
            with _speaking():
                points, after = self._client.scroll(
                    self._collection, limit=_PAGE, offset=after, with_payload=False, with_vectors=False
                )
            found |= {int(point.id) for point in points}
            if after is None:
                break
        return found

    def vectors(self, ids: Sequence[int]) -> Mapping[int, Vector]:
        """Return the vectors of the server."""
        if not self._there:
            return {}
        with _speaking():
            found = self._client.retrieve(self._collection, list(ids), with_payload=False, with_vectors=True)
        return {int(point.id): np.array(point.vector, np.float32) for point in found}

    def tidy(self) -> None:
        """Do nothing: the server optimizes itself."""

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def _make(self, dimension: int) -> None:
        from qdrant_client.models import Distance, VectorParams

        if not self._there:
            vectors = VectorParams(size=dimension, distance=Distance.COSINE)
            self._client.create_collection(self._collection, vectors_config=vectors)
            self._there = True


def _exact() -> Any:
    # A server needs a parameter for exact search. The memory mode is always exact, and warns about the parameter.
    from qdrant_client.models import SearchParams

    return SearchParams(exact=True)


@contextmanager
def _speaking() -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise LiveIndexError(f"The Qdrant index does not answer: {type(error).__name__}: {error}") from error


_TOGETHER = 64
"""Queries in one request."""
ScoredIds = list[tuple[float, str]]
"""Cosine and id of each point, best first."""


def nearest(collection: ServerCollection, vectors: Sequence[Vector], k: int, total: int) -> list[ScoredIds]:
    """Return the nearest points of each vector; more than ``k`` if some tie with the k-th.

    Args:
        collection: the collection to search.
        vectors: the vectors of the queries.
        k: number of points to find.
        total: number of points in the collection.
    """
    # The server may cut a tie, so ask for more until all ties with the k-th point are included.
    wanted = k + 1
    found = _asked(collection, vectors, min(wanted, total))
    while cut := [n for n, each in enumerate(found) if k < len(each) < total and each[k - 1][0] == each[-1][0]]:
        wanted *= 4
        deeper = _asked(collection, [vectors[n] for n in cut], min(wanted, total))
        for n, each in zip(cut, deeper, strict=True):
            found[n] = each
    return found


def _asked(collection: ServerCollection, vectors: Sequence[Vector], limit: int) -> list[ScoredIds]:
    from qdrant_client.models import QueryRequest

    if not limit:
        return [[] for _ in vectors]
    params, consistency = collection.search_params(), _consistency(collection.cluster.read_consistency)
    found: list[ScoredIds] = []
    for start in range(0, len(vectors), _TOGETHER):
        requests = [
            QueryRequest(query=[float(each) for each in vector], limit=limit, params=params, with_payload=False)
            for vector in vectors[start : start + _TOGETHER]
        ]
        answers = collection.client.query_batch_points(collection.name, requests, consistency=consistency)
        found += [[(point.score, str(point.id)) for point in each.points] for each in answers]
    return found


def _consistency(text: str) -> Any:
    return int(text) if text.isdigit() else text or None


# The index on a Qdrant server or cluster, by its client; or the client's memory mode.
#
# It was not tested with a server: TLS, rights of a key, sharding and replicas of a cluster, a crash of the server.
# Requests are tested: a stub of the REST API validates them against the client's own models.


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
