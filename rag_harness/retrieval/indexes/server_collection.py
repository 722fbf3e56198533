"""Collections on a Qdrant server: creation, upload, health checks and state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from time import monotonic, sleep
from typing import Any
from uuid import UUID

from rag_harness.core import progress
from rag_harness.core.errors import CriticalError, SettingsError
from rag_harness.core.log import log
from rag_harness.core.progress import report
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Matrix
from rag_harness.retrieval.indexes.server_connection import (
    ClusterOptions,
    GraphOptions,
    check_version,
    cluster_options,
    connect,
    graph_options,
    quiet,
    status_of,
)

# A collection: how it is made and checked. Its metadata describe its content from the beginning.
#
# The name that is searched is an alias, which is switched to the collection when all its points can be read. So a run
# never searches half a collection, and two that fill the same one write the same points.

COLLECTION_PREFIX = "rag_harness_"
POINTS = "_points"
"""What the name of a collection ends with; the alias is without it."""
OURS = "rag_harness"
"""Key in the metadata for the content of a collection."""


@dataclass(frozen=True)
class CollectionContent:
    """The content of a collection.

    Attributes:
        digest: digest of chunks and embedding model.
        model: the model and its revision.
        chunks: number of chunks.
        dimension: length of a vector; 0 before the first vector.
    """

    digest: str
    model: str
    chunks: int
    dimension: int = 0


def collection_name(digest: str, graph: GraphOptions | None = None) -> str:
    """Return the alias of the collection with this content. Another graph gives another collection."""
    return f"{COLLECTION_PREFIX}{digest[:16]}" + (f"_{graph.name}" if graph else "")


@dataclass(frozen=True)
class ServerCollection:
    """One collection of a server. Errors of the client are passed on.

    Attributes:
        client: the server's client.
        name: the alias, by which it is searched.
        url: the server's URL, for messages; empty is the memory mode.
        cluster: options of sharding and writing.
        graph: options of graph search; None: exact search.
    """

    client: Any
    name: str
    url: str
    cluster: ClusterOptions
    graph: GraphOptions | None = None

    @property
    def points(self) -> str:
        """The name of the collection behind the alias."""
        return f"{self.name}{POINTS}"

    def info(self) -> Any | None:
        """Return the server's information about it, or None where it does not exist."""
        return self.client.get_collection(self.points) if self.client.collection_exists(self.points) else None

    def count(self) -> int:
        """Return the exact number of points."""
        return int(self.client.count(self.points, exact=True).count)

    def is_published(self) -> bool:
        """Return whether the alias names the existing collection: all its points were there."""
        found = self.client.get_collection_aliases(self.points).aliases
        return self.name in [each.alias_name for each in found]

    def publish(self) -> None:
        """Switch the alias to the collection."""
        from qdrant_client.models import CreateAlias, CreateAliasOperation

        alias = CreateAlias(collection_name=self.points, alias_name=self.name)
        self.client.update_collection_aliases([CreateAliasOperation(create_alias=alias)])

    def check(self, info: Any, content: CollectionContent) -> None:
        """Check that the existing collection has this content.

        Raises:
            CriticalError: it has another digest or none, another dimension, or another distance.
        """
        told, vectors = content_told(info), info.config.params.vectors
        if told is None or told.digest != content.digest:
            found = "has no digest of this package's" if told is None else f"holds content {told.digest}"
            raise self._strange(f"{found}, not {content.digest}")
        size, distance = getattr(vectors, "size", None), str(getattr(vectors, "distance", None))
        if distance != "Cosine":
            raise self._strange(f"compares by {distance}, not by Cosine")
        wanted = content.dimension or told.dimension
        if size != wanted:
            raise self._strange(f"holds vectors of {size} numbers, not {wanted}")

    def make(self, content: CollectionContent) -> None:
        """Make the collection if it does not exist. If several processes try, only one succeeds."""
        try:
            with quiet():
                self.client.create_collection(self.points, **self._config(content))
        except Exception as error:
            if status_of(error) not in (400, 409) or self.info() is None:
                raise
        self._index("doc_id", tenant=False)
        if self.cluster.tenant:
            self._index(f"metadata.{self.cluster.tenant}", tenant=True)

    def search_params(self) -> Any:
        """Return the search parameters. None in memory mode, which is always exact and warns about parameters."""
        from qdrant_client.models import QuantizationSearchParams, SearchParams

        if self.graph is None:
            return SearchParams(exact=True) if self.url else None
        small = self.graph.quantize != "none"
        rescored = QuantizationSearchParams(rescore=self.graph.rescore, oversampling=self.graph.oversampling)
        return SearchParams(hnsw_ef=self.graph.ef, quantization=rescored if small else None)

    def _config(self, content: CollectionContent) -> Mapping[str, Any]:
        from qdrant_client.models import Distance, HnswConfigDiff, VectorParams

        cluster, graph = self.cluster, self.graph
        vectors = VectorParams(size=content.dimension, distance=Distance.COSINE, on_disk=cluster.on_disk or None)
        # Exact search needs no graph, and building one takes longer than everything else.
        hnsw = HnswConfigDiff(m=graph.m, ef_construct=graph.ef_construct) if graph else HnswConfigDiff(m=0)
        return {
            "vectors_config": vectors,
            "shard_number": cluster.shards or None,
            "replication_factor": cluster.replicas,
            "write_consistency_factor": cluster.write_consistency,
            "hnsw_config": hnsw,
            "quantization_config": _quantization(graph),
            "metadata": {OURS: asdict(content)},
        }

    def _index(self, key: str, tenant: bool) -> None:
        from qdrant_client.models import KeywordIndexParams, KeywordIndexType

        schema = KeywordIndexParams(type=KeywordIndexType.KEYWORD, is_tenant=tenant or None)
        with quiet():
            self.client.create_payload_index(self.points, key, schema, wait=True)

    def _strange(self, found: str) -> CriticalError:
        return CriticalError(
            f"Collection {self.name} at {self.url or 'memory'} {found}. It was made by something else, or by another "
            f"version. Remove it (rag-harness index drop {self.name}), and the next run makes it again."
        )


def collection_for(settings: Settings, digest: str) -> ServerCollection:
    """Return the collection of this content on the server of the settings.

    Raises:
        SettingsError: the URL is invalid, the key would be sent in clear, or an option has a wrong value.
    """
    cluster, graph = cluster_options(settings), graph_options(settings)
    client = connect(settings.qdrant_url, settings.qdrant_api_key, cluster.timeout)
    return ServerCollection(client, collection_name(digest, graph), settings.qdrant_url, cluster, graph)


def content_told(info: Any) -> CollectionContent | None:
    """Return the content in a collection's metadata; None for a collection of other origin."""
    told: Any = (info.config.metadata or {}).get(OURS)
    try:
        return CollectionContent(**told)
    except TypeError:
        return None


def _quantization(graph: GraphOptions | None) -> Any:
    from qdrant_client import models

    if graph is None or graph.quantize == "none":
        return None
    if graph.quantize == "binary":
        return models.BinaryQuantization(binary=models.BinaryQuantizationConfig(always_ram=True))
    return models.ScalarQuantization(
        scalar=models.ScalarQuantizationConfig(type=models.ScalarType.INT8, quantile=0.99, always_ram=True)
    )


def point_id(chunk: Chunk, model: str) -> str:
    """Return the id of a chunk's point, made of ``model``, the chunk's id and its text.

    The same content has the same id wherever it is made, so a point that is sent twice is there once.
    """
    made_of = f"{model}\0{chunk.chunk_id}\0{chunk.text}".encode("utf-8", "surrogatepass")
    return str(UUID(bytes=blake2b(made_of, digest_size=16).digest()))


def payload(chunk: Chunk) -> dict[str, Any]:
    """Return the payload of a chunk's point."""
    return {
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.doc_id,
        "text": chunk.text,
        "section": list(chunk.section),
        "metadata": dict(chunk.metadata),
    }


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
            progress.report("waiting for Qdrant", 0, 1)
            clock.sleep(_POLL)
    progress.report("waiting for Qdrant", 1, 1)


def _looks(collection: ServerCollection) -> int:
    """Return how many checks in a row must succeed. The server is green for a moment before it builds a graph."""
    return 1 if collection.graph is None else 3


def _lacks(collection: ServerCollection, count: int) -> str:
    found = collection.count()
    if found > count:
        raise CriticalError(
            f"Collection {collection.name} at {collection.url or 'memory'} has {found - count:,} points that belong to "
            f"no chunk. Something else writes into it. Remove it (rag-harness index drop {collection.name}), and the "
            f"next run makes it again."
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


# Filling of a collection. Ids of points are made of their content, so an upload can be repeated by anybody.

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
        content: its content, which the metadata states.
        chunks: its chunks, in order.
        vectors: shape (n, d); row i belongs to chunk i.
        clock: the clock for waiting.

    Raises:
        CriticalError: the collection has other content, or is not ready in time.
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


_BYTES = {"none": 4.0, "int8": 5.0, "binary": 4.125}
"""Bytes of each number of a vector: of the full vector, and of the quantized one besides it."""


@dataclass(frozen=True)
class CollectionState:
    """The state of one collection.

    Attributes:
        name: its alias.
        told: the content in its metadata; None for a collection of other origin, or an old one.
        points: number of points.
        shards: its shards, each with the states of its replicas.
        replicas: intended number of replicas of each shard.
        status: the server's status: green, yellow, grey or red.
        quantize: none, int8 or binary.
        published: whether the alias names it: all points were there.
    """

    name: str
    told: CollectionContent | None
    points: int
    shards: dict[int, list[tuple[str, str]]]
    replicas: int
    status: str
    quantize: str
    published: bool

    @property
    def vector_bytes(self) -> int:
        """Computed bytes of the vectors of all replicas, without graph and text. The server does not state them."""
        dimension = self.told.dimension if self.told else 0
        return int(self.points * dimension * _BYTES[self.quantize] * self.replicas)

    @property
    def faults(self) -> list[str]:
        """The reasons why a run cannot use it."""
        down = [shard for shard, copies in self.shards.items() if not any(state in READS for _, state in copies)]
        missing = self.told.chunks - self.points if self.told else 0
        said = {
            "no digest of this package's": self.told is None,
            f"shards without a living copy: {', '.join(map(str, down))}": bool(down),
            "status red": self.status == "red",
            f"{missing:,} chunks missing": missing > 0,
            f"{-missing:,} points too many": missing < 0,
            "not searched yet: its alias is switched when all points are there": not self.published,
        }
        return [fault for fault, is_so in said.items() if is_so]


def states(client: Any, names: Sequence[str] = ()) -> Iterator[CollectionState]:
    """Yield the state of this package's collections, sorted by name, or of the named ones.

    Raises:
        SettingsError: no collection has that name.
    """
    there = [each.name for each in client.get_collections().collections]
    ours = sorted(name.removesuffix(POINTS) for name in there if _is_ours(name))
    strange = sorted({*names} - {*ours})
    if strange:
        raise SettingsError(f"There is no collection {', '.join(strange)}. There are: {', '.join(ours) or 'none'}.")
    aliases = {each.alias_name for each in client.get_aliases().aliases}
    for name in names or ours:
        yield _state(client, name, name in aliases)


def drop(client: Any, name: str) -> None:
    """Remove a collection with its alias. A run that searches or fills it ends with an error.

    Raises:
        SettingsError: no collection has that name, or it does not belong to this package.
    """
    list(states(client, [name]))
    client.delete_collection(f"{name}{POINTS}")


def _is_ours(name: str) -> bool:
    return name.startswith(COLLECTION_PREFIX) and name.endswith(POINTS)


def _state(client: Any, name: str, published: bool) -> CollectionState:
    collection = f"{name}{POINTS}"
    info = client.get_collection(collection)
    config = info.config
    kind = type(config.quantization_config).__name__
    return CollectionState(
        name,
        content_told(info),
        int(client.count(collection, exact=True).count),
        shard_states(client, collection),
        int(config.params.replication_factor or 1),
        str(info.status),
        {"ScalarQuantization": "int8", "BinaryQuantization": "binary"}.get(kind, "none"),
        published,
    )
