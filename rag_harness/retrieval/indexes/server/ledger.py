"""Who is changing which collection: one point a collection, written only over the state that its writer has read.

The server compares and writes in one step (a conditional upsert), one copy leads (ordering ``strong``), and every write
raises the turn; so of two who read the same turn one writes, and the other finds out. No clock of one machine is ever
held against another's: who waits watches whether the turn goes on, by a clock of its own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any
from uuid import UUID

from rag_harness.retrieval.indexes.server.connection import quiet, status_of

LEDGER = "rag_harness_runs"
NEVER = -1
"""The turn of a collection that nobody has written of."""


@dataclass(frozen=True)
class Entry:
    """What is known of a collection's last change.

    Attributes:
        collection: its name.
        turn: raised by every write; what a writer must have read.
        holder: the process that wrote it; a name that no other has.
        run: the run that the process belongs to.
        who: host and process, for people.
        changing: whether the holder is at it, or was when it was last heard of.
        done: points that were written or found there.
        total: points that there will be.
        heard: when that was, by the holder's clock, for people; nothing is decided by it.
    """

    collection: str
    turn: int
    holder: str
    run: str
    who: str
    changing: bool
    done: int
    total: int
    heard: str


class Ledger:
    """The collection ``rag_harness_runs`` of a server. Failures of the client go through."""

    def __init__(self, client: Any, replicas: int = 1) -> None:
        self._client, self._replicas, self._there = client, replicas, False

    def read(self, collection: str) -> Entry | None:
        """Return what most copies know of a collection; None where nobody has written of it."""
        if not self._exists():
            return None
        points = self._client.retrieve(LEDGER, [_point(collection)], with_payload=True, consistency="majority")
        return Entry(**points[0].payload) if points else None

    def write(self, entry: Entry, seen: int) -> bool:
        """Write ``entry`` where the turn is still ``seen``, and return whether it is there now."""
        from qdrant_client.models import FieldCondition, Filter, MatchValue, PointStruct, WriteOrdering

        self._make()
        point = PointStruct(id=_point(entry.collection), vector={}, payload=asdict(entry))
        unchanged = Filter(must=[FieldCondition(key="turn", match=MatchValue(value=seen))])
        self._client.upsert(LEDGER, [point], wait=True, ordering=WriteOrdering.STRONG, update_filter=unchanged)
        return self.read(entry.collection) == entry

    def forget(self, collection: str) -> None:
        """Remove what is known of a collection that is gone."""
        from qdrant_client.models import PointIdsList

        if self._exists():
            self._client.delete(LEDGER, PointIdsList(points=[_point(collection)]), wait=True)

    def _exists(self) -> bool:
        self._there = self._there or bool(self._client.collection_exists(LEDGER))
        return self._there

    def _make(self) -> None:
        if self._exists():
            return
        try:
            self._client.create_collection(
                LEDGER,
                vectors_config={},
                shard_number=1,
                replication_factor=self._replicas,
                # What most copies have is what most copies say; one of three may be down.
                write_consistency_factor=self._replicas // 2 + 1,
            )
        except Exception as error:
            if status_of(error) not in (400, 409):  # another run made it meanwhile
                raise
        with quiet():
            # Where the server is strict, only what is indexed may be a condition.
            self._client.create_payload_index(LEDGER, "turn", "integer", wait=True)


def _point(collection: str) -> str:
    return str(UUID(bytes=blake2b(collection.encode(), digest_size=16).digest()))
