from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import qdrant_edge as edge
from qdrant_client import QdrantClient

from rag_harness.retrieval.indexes.server.ledger import NEVER, CollectionLedger, Entry
from tests.unit.retrieval.indexes.server.stub import cluster_stub

ENTRY = Entry("c", 0, "a", "run a", "host:1", True, 0, 10, "2026-01-01T00:00:00+00:00")


@pytest.fixture
def ledger() -> Iterator[CollectionLedger]:
    client = QdrantClient(":memory:")
    yield CollectionLedger(client)
    client.close()


def test_what_is_written_is_read(ledger: CollectionLedger) -> None:
    assert ledger.read("c") is None
    assert ledger.write(ENTRY, NEVER)
    assert ledger.read("c") == ENTRY
    assert ledger.read("another") is None
    ledger.forget("c")
    assert ledger.read("c") is None


def test_of_two_who_read_the_same_one_writes(ledger: CollectionLedger) -> None:
    assert ledger.write(ENTRY, NEVER)
    assert not ledger.write(replace(ENTRY, holder="b"), NEVER)
    assert ledger.write(replace(ENTRY, holder="b", turn=1), 0)
    assert not ledger.write(replace(ENTRY, holder="a", turn=1), 0)
    there = ledger.read("c")
    assert there is not None
    assert there.holder == "b"


def test_a_server_is_asked_for_what_most_copies_have() -> None:
    with cluster_stub() as stub:
        client = QdrantClient(stub.url, check_compatibility=False)
        assert CollectionLedger(client, replicas=3).write(ENTRY, NEVER)
        made, written, read = (stub.calls[n] for n in (1, 3, 5))
        assert [call.what for call in (made, written, read)] == ["PUT /", "PUT /points", "POST /points"]
        asked = made.asked
        assert (asked.shard_number, asked.replication_factor, asked.write_consistency_factor) == (1, 3, 2)
        assert written.query == {"wait": "true", "ordering": "strong"}
        assert read.query == {"consistency": "majority"}
        assert not CollectionLedger(client).write(replace(ENTRY, holder="b"), NEVER)
        client.close()


def test_another_run_may_make_the_ledger_first() -> None:
    with cluster_stub() as stub:
        client = QdrantClient(stub.url, check_compatibility=False)
        late = CollectionLedger(client)
        late._exists()
        assert CollectionLedger(client).write(ENTRY, NEVER)
        stub.fault = lambda call: (200, {"exists": False}) if call.what == "GET /exists" else None
        late._make()
        client.close()


def test_the_engine_writes_a_point_only_where_the_condition_holds(tmp_path: Path) -> None:
    """What memory mode does here is what Qdrant's own engine does, which Edge is made of."""
    shard = edge.EdgeShard.create(
        str(tmp_path), edge.EdgeConfig(vectors=edge.EdgeVectorParams(1, edge.Distance.Cosine))
    )

    def write(holder: str, turn: int, seen: int) -> Any:
        condition = edge.Filter(must=[edge.FieldCondition(key="turn", match=edge.MatchValue(seen))])
        point = edge.Point(1, [1.0], {"turn": turn, "holder": holder})
        shard.update(edge.UpdateOperation.upsert_points([point], condition))
        return (shard.retrieve([1], True, False)[0].payload or {})["holder"]

    assert [write("a", 0, NEVER), write("b", 0, NEVER), write("b", 1, 0), write("a", 1, 0)] == ["a", "a", "b", "b"]
    shard.close()
