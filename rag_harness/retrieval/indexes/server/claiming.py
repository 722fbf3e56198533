"""The right to fill a collection, unless it is whole; whatever would stop the work is asked for first."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.retrieval.indexes.server.collection import Collection, Content
from rag_harness.retrieval.indexes.server.connection import check_version
from rag_harness.retrieval.indexes.server.health import check_nodes, check_shards
from rag_harness.retrieval.indexes.server.lease import Clock, Lease, run_name
from rag_harness.retrieval.indexes.server.ledger import Ledger
from rag_harness.retrieval.indexes.server.taking import Wanted, acquire


@dataclass(frozen=True)
class Claim:
    """A collection that is to hold something.

    Attributes:
        collection: of a server.
        content: what it is to hold.
        ledger: of that server.
        overwrite: whether one that another run has made is written again.
        clock: of the wait for another that is changing it.
    """

    collection: Collection
    content: Content
    ledger: Ledger
    overwrite: bool
    clock: Clock

    def acquired(self) -> Lease | None:
        """Return the right to write; None where nothing is left to write.

        Raises:
            CriticalError: the server cannot do it, the collection is another thing, or another run is changing it.
        """
        check_server(self.collection)
        wanted = Wanted(self.collection.name, self.content.chunks, self.collection.cluster.wait)
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


def check_server(collection: Collection) -> None:
    """Check that the server is there, new enough, and has a node for each copy; memory is.

    Raises:
        CriticalError: it is not so.
    """
    if collection.url:
        check_version(collection.client, collection.url)
        check_nodes(collection.client, collection.url, collection.cluster.replicas)
