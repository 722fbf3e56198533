"""Filling of a collection. Ids of points are made of their content, so an upload can be repeated by anybody."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.files.log import log
from rag_harness.retrieval.indexes.server.connection import quiet
from rag_harness.retrieval.indexes.server.health import Clock, check_shards, wait_until_ready
from rag_harness.retrieval.indexes.server.points import payload, point_id
from rag_harness.retrieval.indexes.server.server_collection import CollectionContent, ServerCollection
from rag_harness.types import Chunk, Matrix
from rag_harness.work.reporting import report

RETRIES = 5
"""How often a request of an upload is repeated. The client waits as long as a server says that has too much to do."""
_REPORTED = 8192
"""Chunks between two reports of the progress."""


def fill(
    collection: ServerCollection, content: CollectionContent, chunks: Sequence[Chunk], vectors: Matrix, clock: Clock
) -> None:
    """Make the collection if needed, send all points, wait until they can be read, and let the alias name it.

    Args:
        collection: the collection.
        content: its content, for the metadata.
        chunks: its chunks, in order.
        vectors: shape (n, d); row i belongs to chunk i.
        clock: the clock for waiting.

    Raises:
        CriticalError: it has other content, or is not ready in time.
    """
    make_or_check(collection, content)
    report("uploading", 0, len(chunks), "chunks")
    for start in range(0, len(chunks), _REPORTED):
        end = min(start + _REPORTED, len(chunks))
        upload(collection, chunks[start:end], vectors[start:end], content.model)
        report("uploading", end, len(chunks), "chunks")
    complete(collection, content.chunks, clock)
    log.info("Collection %s: %d points sent", collection.name, len(chunks))


def is_complete(collection: ServerCollection, content: CollectionContent) -> bool:
    """Return whether the collection has all points of its content, and its alias names it.

    Raises:
        CriticalError: it has other content, or a shard without a live replica.
    """
    if (info := collection.info()) is None:
        return False
    if collection.url:
        check_shards(collection, info)
    collection.check(info, content)
    return collection.is_published() and collection.count() == content.chunks


def make_or_check(collection: ServerCollection, content: CollectionContent) -> None:
    """Make the collection, or check the existing one.

    Raises:
        CriticalError: it has other content.
    """
    if (info := collection.info()) is None:
        collection.make(content)
    else:
        collection.check(info, content)


def upload(collection: ServerCollection, chunks: Sequence[Chunk], vectors: Matrix, model: str) -> None:
    """Send the points of some chunks. They are written when this returns.

    Args:
        collection: the collection, which exists.
        chunks: the chunks.
        vectors: shape (n, d); row i belongs to chunk i.
        model: model and revision of the vectors.
    """
    with quiet():
        collection.client.upload_collection(
            collection.points,
            vectors=vectors,
            payload=map(payload, chunks),
            ids=(point_id(chunk, model) for chunk in chunks),
            batch_size=collection.cluster.batch,
            max_retries=RETRIES,
            wait=True,
        )


def without_points(collection: ServerCollection, chunks: Sequence[Chunk], model: str) -> list[Chunk]:
    """Return the chunks whose points the collection lacks, so that they alone are embedded."""
    ids = [point_id(chunk, model) for chunk in chunks]
    there = collection.client.retrieve(collection.points, ids, with_payload=False, with_vectors=False)
    known = {str(point.id) for point in there}
    return [chunk for chunk, name in zip(chunks, ids, strict=True) if name not in known]


def complete(collection: ServerCollection, count: int, clock: Clock) -> None:
    """Wait until all ``count`` points can be read, then switch the alias, by which searches find the collection."""
    wait_until_ready(collection, count, clock)
    collection.publish()
