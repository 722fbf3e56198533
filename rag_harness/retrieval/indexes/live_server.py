"""A Qdrant server's collection that changes while it is searched; or the client's memory, where Edge has no wheel.

Like ``qdrant_server`` it is tested in memory mode and with a stub that validates requests, but never with a server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from rag_harness.retrieval.indexes.live import LiveIndexError
from rag_harness.retrieval.indexes.server.connection import connect, quiet
from rag_harness.types import Matrix, Vector

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
