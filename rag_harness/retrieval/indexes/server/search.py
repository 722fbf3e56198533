"""Searches of a collection: many queries in one request, and all ties with the last hit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rag_harness.retrieval.indexes.server.server_collection import ServerCollection
from rag_harness.types import Vector

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
