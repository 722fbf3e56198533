"""Claim of an incomplete collection: all checks first, then the lease."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.retrieval.indexes.server.connection import check_version
from rag_harness.retrieval.indexes.server.health import check_nodes, check_shards
from rag_harness.retrieval.indexes.server.lease import Clock, Lease, run_name
from rag_harness.retrieval.indexes.server.ledger import CollectionLedger
from rag_harness.retrieval.indexes.server.server_collection import CollectionContent, ServerCollection
from rag_harness.retrieval.indexes.server.taking import WantedChange, acquire


@dataclass(frozen=True)
class CollectionClaim:
    """A collection to fill.

    Attributes:
        collection: the collection on a server.
        content: its intended content.
        ledger: the ledger of that server.
        overwrite: whether a collection made by another run is written again.
        clock: the clock for waiting for another run.
    """

    collection: ServerCollection
    content: CollectionContent
    ledger: CollectionLedger
    overwrite: bool
    clock: Clock

    def acquired(self) -> Lease | None:
        """Return the lease; None where nothing is left to write.

        Raises:
            CriticalError: the server is unfit, the collection has other content, or another run is changing it.
        """
        check_server(self.collection)
        wanted = WantedChange(self.collection.name, self.content.chunks, self.collection.cluster.wait)
        return acquire(self.ledger, wanted, self._is_whole, self.clock)

    def _is_whole(self) -> bool:
        info = self.collection.info()
        if info is None:
            return False
        if self.collection.url:
            check_shards(self.collection, info)
        if self._rewrites():
            return False
        self.collection.check(info, self.content)
        return self.collection.count() == self.content.chunks

    def _rewrites(self) -> bool:
        if not self.overwrite:
            return False
        there = self.ledger.read(self.collection.name)
        return there is None or there.run != run_name() or there.changing


def check_server(collection: ServerCollection) -> None:
    """Check that the server answers, is new enough, and has a node for each replica. The memory mode always passes.

    Raises:
        CriticalError: a check fails.
    """
    if collection.url:
        check_version(collection.client, collection.url)
        check_nodes(collection.client, collection.url, collection.cluster.replicas)
