"""Health checks of a cluster: enough nodes, a live replica of each shard, and written points can be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Any

from rag_harness.errors import CriticalError
from rag_harness.files.log import log
from rag_harness.retrieval.indexes.server.connection import check_version
from rag_harness.retrieval.indexes.server.server_collection import ServerCollection
from rag_harness.work import reporting

_POLL = 1.0
READS = frozenset({"Active", "ActiveRead"})
"""States of a replica that answers."""


@dataclass(frozen=True)
class Clock:
    """The clock for waits; tests replace it."""

    now: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


def check_server(collection: ServerCollection) -> None:
    """Check that the server answers, is new enough, and has a node for each replica. The memory mode always passes.

    Raises:
        CriticalError: a check fails.
    """
    if collection.url:
        check_version(collection.client, collection.url)
        check_nodes(collection.client, collection.url, collection.cluster.replicas)


def check_nodes(client: Any, url: str, replicas: int) -> None:
    """Check that each replica of a shard can have its own node.

    Raises:
        CriticalError: there are more replicas than nodes.
    """
    if replicas == 1:
        return  # a key for one collection may not list the nodes
    nodes = node_count(client)
    if replicas > nodes:
        raise CriticalError(
            f"qdrant_cluster has replicas={replicas}, but Qdrant at {url} has {nodes} node{'s' * (nodes != 1)}: a "
            f"node keeps one copy of a shard at most. Start more nodes, or set replicas={nodes}."
        )


def node_count(client: Any) -> int:
    """Return the number of nodes; 1 without a cluster."""
    return max(1, len(getattr(client.cluster_status(), "peers", None) or ()))


def shard_states(client: Any, name: str) -> dict[int, list[tuple[str, str]]]:
    """Return the replicas of each shard of a collection, with node and state."""
    about = client.collection_cluster_info(name)
    states: dict[int, list[tuple[str, str]]] = {}
    for shard in about.local_shards:
        states.setdefault(shard.shard_id, []).append((str(about.peer_id), str(shard.state)))
    for shard in about.remote_shards:
        states.setdefault(shard.shard_id, []).append((str(shard.peer_id), str(shard.state)))
    return states


def check_shards(collection: ServerCollection, info: Any) -> None:
    """Check that each shard has a live replica. Dead replicas beside a live one are logged.

    Args:
        collection: the collection to search or fill.
        info: the server's information about it.

    Raises:
        CriticalError: a shard has no live replica, or the server reports a failure (status red).
    """
    states = shard_states(collection.client, collection.points)
    down = {shard: copies for shard, copies in states.items() if not any(state in READS for _, state in copies)}
    if down:
        raise CriticalError(
            f"Collection {collection.name} at {collection.url} is not whole: {'; '.join(_said(down))}. Start what is "
            f"down, and wait until its shards are Active (rag-harness index status)."
        )
    partly = {shard: copies for shard, copies in states.items() if any(state not in READS for _, state in copies)}
    if partly:
        log.warning("Of collection %s some copies do not answer: %s", collection.name, "; ".join(_said(partly)))
    _check_status(collection, info)


def wait_until_ready(collection: ServerCollection, count: int, clock: Clock) -> None:
    """Wait until all written points can be read, and any graph is built.

    Args:
        collection: the collection that was written.
        count: number of points that it must have.
        clock: the clock for waiting.

    Raises:
        CriticalError: this is not so after ``wait`` seconds; says how far it is. Or the server reports a failure.
    """
    began, looks = clock.now(), _looks(collection)
    while looks:
        lack = _lacks(collection, count)
        if lack and clock.now() - began >= collection.cluster.wait:
            raise CriticalError(
                f"Collection {collection.name} at {collection.url or 'memory'} is not ready after "
                f"{collection.cluster.wait} s: {lack}. Run again, it goes on from there; or raise qdrant_cluster "
                f"wait=."
            )
        looks = _looks(collection) if lack else looks - 1
        if looks:
            reporting.report("waiting for Qdrant", 0, 1)
            clock.sleep(_POLL)
    reporting.report("waiting for Qdrant", 1, 1)


def _looks(collection: ServerCollection) -> int:
    """Return how many checks in a row must succeed. The server is green for a moment before it builds a graph."""
    return 1 if collection.graph is None else 3


def _lacks(collection: ServerCollection, count: int) -> str:
    found = collection.count()
    if found > count:
        raise CriticalError(
            f"Collection {collection.name} at {collection.url or 'memory'} has {found - count:,} points that belong to "
            f"no chunk. Something else writes into it. Remove it (rag-harness index drop {collection.name}), and the "
            f"next run makes it anew."
        )
    if found != count:
        return f"{found:,} of {count:,} points can be read"
    if not collection.url:
        return ""
    info = collection.client.get_collection(collection.points)
    _check_status(collection, info)
    if waiting := getattr(info.update_queue, "length", 0):
        return f"{waiting:,} requests wait to be written"
    if hidden := getattr(info.update_queue, "deferred_points", 0):
        return f"{hidden:,} points are kept from searches until they are in the graph"
    if str(info.status) == "yellow" and collection.graph is not None:
        return f"its graph is being made (status yellow, {info.indexed_vectors_count or 0:,} vectors in it)"
    return ""


def _check_status(collection: ServerCollection, info: Any) -> None:
    failed = getattr(info.optimizer_status, "error", "")
    if str(info.status) == "red" or failed:
        raise CriticalError(
            f"Collection {collection.name} at {collection.url} has failed (status {info.status}): "
            f"{failed or 'the server does not say why'}. Read the server's log: its disk may be full."
        )


def _said(states: dict[int, list[tuple[str, str]]]) -> Iterator[str]:
    for shard, copies in sorted(states.items()):
        yield f"shard {shard} ({', '.join(f'{state} on node {node}' for node, state in copies)})"
