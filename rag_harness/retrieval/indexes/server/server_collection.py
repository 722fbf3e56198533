"""A collection: how it is made and checked. Its metadata describe its content from the beginning.

The name that is searched is an alias, which is switched to the collection when all its points can be read. So a run
never searches half a collection, and two that fill the same one write the same points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rag_harness.errors import CriticalError
from rag_harness.retrieval.indexes.server.connection import connect, quiet, status_of
from rag_harness.retrieval.indexes.server.server_options import (
    ClusterOptions,
    GraphOptions,
    cluster_options,
    graph_options,
)
from rag_harness.settings import Settings

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
            f"version. Remove it (rag-harness index drop {self.name}), and the next run makes it anew."
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
