"""The ledger of leases: a collection with one point for each collection, which says who is changing it.

A writer must name the state that it has read. The server compares and writes in one step (a conditional upsert), one
replica leads (ordering ``strong``), and every write raises the turn. So if two processes read the same turn, one writes
and the other notices. Clocks of different machines are never compared: a waiting process watches the turn by its own
clock.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any
from uuid import UUID

from rag_harness.retrieval.indexes.server.connection import quiet, status_of

LEDGER = "rag_harness_runs"
NEVER = -1
"""The turn of a collection without an entry."""


@dataclass(frozen=True)
class Entry:
    """The entry of a collection: its last change.

    Attributes:
        collection: the name of the collection.
        turn: a number that every write raises. A writer must have read the current one.
        holder: the unique name of the process that wrote it.
        run: the run of that process.
        who: host and process, for people.
        changing: whether the holder is changing the collection, as of its last heartbeat.
        done: number of points that were written or existed.
        total: number of points at the end.
        heard: time of the last heartbeat, by the holder's clock. It is only shown, and decides nothing.
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


class CollectionLedger:
    """The collection ``rag_harness_runs`` of a server. Errors of the client are passed on."""

    def __init__(self, client: Any, replicas: int = 1) -> None:
        self._client, self._replicas, self._there = client, replicas, False

    def read(self, collection: str) -> Entry | None:
        """Return the entry of a collection that most replicas have, or None without one."""
        if not self._exists():
            return None
        points = self._client.retrieve(LEDGER, [_point(collection)], with_payload=True, consistency="majority")
        return Entry(**points[0].payload) if points else None

    def write(self, entry: Entry, seen: int) -> bool:
        """Write ``entry`` if the turn is still ``seen``; return whether it was written."""
        from qdrant_client.models import FieldCondition, Filter, MatchValue, PointStruct, WriteOrdering

        self._make()
        point = PointStruct(id=_point(entry.collection), vector={}, payload=asdict(entry))
        unchanged = Filter(must=[FieldCondition(key="turn", match=MatchValue(value=seen))])
        self._client.upsert(LEDGER, [point], wait=True, ordering=WriteOrdering.STRONG, update_filter=unchanged)
        return self.read(entry.collection) == entry

    def forget(self, collection: str) -> None:
        """Remove the entry of a deleted collection."""
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
                # A majority of replicas must have each write and agree on each read. One of three may be down.
                write_consistency_factor=self._replicas // 2 + 1,
            )
        except Exception as error:
            if status_of(error) not in (400, 409):  # another run has made it meanwhile
                raise
        with quiet():
            # In strict mode, the server allows only indexed fields in conditions.
            self._client.create_payload_index(LEDGER, "turn", "integer", wait=True)


def _point(collection: str) -> str:
    return str(UUID(bytes=blake2b(collection.encode(), digest_size=16).digest()))
