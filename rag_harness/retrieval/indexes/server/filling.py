"""Filling of a collection for which this process holds the lease."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.retrieval.indexes.server.connection import quiet
from rag_harness.retrieval.indexes.server.health import wait_until_ready
from rag_harness.retrieval.indexes.server.lease import Clock, Lease
from rag_harness.retrieval.indexes.server.points import point_batches, point_id
from rag_harness.retrieval.indexes.server.server_collection import CollectionContent, ServerCollection
from rag_harness.retrieval.indexes.server.upload import Upload
from rag_harness.types import Chunk, Matrix


@dataclass(frozen=True)
class Filling:
    """The data for a collection.

    Attributes:
        content: its description, for the metadata.
        chunks: its chunks, in order.
        vectors: shape (n, d); row i belongs to chunk i.
        anew: whether existing points are written again.
    """

    content: CollectionContent
    chunks: Sequence[Chunk]
    vectors: Matrix
    anew: bool


def fill(collection: ServerCollection, filling: Filling, lease: Lease, clock: Clock) -> None:
    """Make the collection if needed, send missing points, and wait until all points can be read.

    Raises:
        CriticalError: it has other content, another run has taken over, or it is not ready in time.
    """
    resumes = make_room(collection, filling.content, filling.anew)
    with quiet():
        _send(collection, filling, lease, resumes)
    last = (point_id(filling.chunks[-1]), filling.vectors[-1]) if filling.chunks else None
    wait_until_ready(collection, filling.content.chunks, last, clock)


def make_room(collection: ServerCollection, content: CollectionContent, anew: bool) -> bool:
    """Make the collection if needed, and return whether its existing points can stay.

    Args:
        collection: a collection for which this process holds the lease.
        content: its intended content.
        anew: whether existing points are written again.

    Raises:
        CriticalError: the collection has other content.
    """
    info: Any = collection.info()
    if info is not None and collection.count() > content.chunks:
        collection.drop()  # it has points that belong to no chunk
        info = None
    if info is None:
        collection.make(content)
        return False
    if anew:
        collection.claim(content)
        info = collection.info()
    collection.check(info, content)
    return not anew


def _send(collection: ServerCollection, filling: Filling, lease: Lease, resumes: bool) -> None:
    options = collection.cluster
    if not collection.url:
        options = replace(options, parallel=1)  # the client's memory mode is not thread-safe

    def heard(done: int) -> None:
        lease.check()
        lease.progress(done)

    made = point_batches(filling.chunks, filling.vectors, filling.content.model, options.batch)
    Upload(collection.client, collection.name, options, resumes).run(made, len(filling.chunks), heard)
