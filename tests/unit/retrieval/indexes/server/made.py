"""Indexes on a stub of a cluster, and a clock that goes as fast as it is waited for."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from rag_harness.core.settings import Settings
from rag_harness.retrieval.indexes.server import QdrantIndex, create
from rag_harness.retrieval.indexes.server_collection import Clock
from tests.unit.retrieval.indexes.server.stub import ClusterStub

DIGEST = "0123456789abcdef" * 2
NAME = "rag_harness_0123456789abcdef"
POINTS = f"{NAME}_points"


@dataclass
class FastClock:
    """Seconds pass by being slept."""

    seconds: float = 0.0
    slept: list[float] = field(default_factory=list)

    @property
    def clock(self) -> Clock:
        return Clock(lambda: self.seconds, self.sleep)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.seconds += seconds


def index_on(stub: ClusterStub, *cluster: str, clock: FastClock | None = None, **settings: Any) -> QdrantIndex:
    """Return an index as the settings make it, with a clock of its own where one is given."""
    asked = Settings(qdrant_url=stub.url, qdrant_cluster=cluster, **settings)
    embedder = SimpleNamespace(model="tiny", revision="1")
    index = create(SimpleNamespace(settings=asked, content_digest=DIGEST, embedder=embedder))
    if clock:
        index._clock = clock.clock
    return index
