"""A collection that is this process's to change, brought to what it should hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.retrieval.indexes.server.collection import Collection, Content
from rag_harness.retrieval.indexes.server.connection import quiet
from rag_harness.retrieval.indexes.server.health import wait_until_ready
from rag_harness.retrieval.indexes.server.lease import Clock, Lease
from rag_harness.retrieval.indexes.server.points import batches, point_id
from rag_harness.retrieval.indexes.server.upload import Upload
from rag_harness.types import Chunk, Matrix


@dataclass(frozen=True)
class Filling:
    """What goes into a collection.

    Attributes:
        content: what the collection is to say of itself.
        chunks: what it holds, in order.
        vectors: shape (n, d); row i belongs to chunk i.
        anew: whether points that are there are written again.
    """

    content: Content
    chunks: Sequence[Chunk]
    vectors: Matrix
    anew: bool


def fill(collection: Collection, filling: Filling, lease: Lease, clock: Clock) -> None:
    """Make the collection where it is not there, send what it lacks, and wait until all of it can be read.

    Raises:
        CriticalError: what is there is another thing, another run has taken over, or it is not ready in time.
    """
    resumes = make_room(collection, filling.content, filling.anew)
    with quiet():
        _send(collection, filling, lease, resumes)
    last = (point_id(filling.chunks[-1]), filling.vectors[-1]) if filling.chunks else None
    wait_until_ready(collection, filling.content.chunks, last, clock)


def make_room(collection: Collection, content: Content, anew: bool) -> bool:
    """Make the collection where it is not there, and return whether points of it that are there can stay.

    Args:
        collection: that is this process's to change.
        content: what it is to hold.
        anew: whether points that are there are written again.

    Raises:
        CriticalError: what is there is another thing.
    """
    info: Any = collection.info()
    if info is not None and collection.count() > content.chunks:
        collection.drop()  # it has points that are no chunks
        info = None
    if info is None:
        collection.make(content)
        return False
    if anew:
        collection.claim(content)
        info = collection.info()
    collection.check(info, content)
    return not anew


def _send(collection: Collection, filling: Filling, lease: Lease, resumes: bool) -> None:
    options = collection.cluster
    if not collection.url:
        options = replace(options, parallel=1)  # the client's memory is not made for threads

    def heard(done: int) -> None:
        lease.check()
        lease.progress(done)

    made = batches(filling.chunks, filling.vectors, filling.content.model, options.batch)
    Upload(collection.client, collection.name, options, resumes).run(made, len(filling.chunks), heard)
