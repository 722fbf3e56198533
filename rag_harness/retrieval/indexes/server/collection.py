"""A collection as it is made, and as it must be found: what it holds stands in its metadata from the first moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rag_harness.errors import CriticalError
from rag_harness.retrieval.indexes.server.connection import connect, quiet, status_of
from rag_harness.retrieval.indexes.server.options import ClusterOptions, GraphOptions, cluster_options, graph_options
from rag_harness.settings import Settings

PREFIX = "rag_harness_"
OURS = "rag_harness"
"""Key of the metadata that says what a collection holds."""


@dataclass(frozen=True)
class Content:
    """What a collection holds.

    Attributes:
        digest: of chunks and embedding model.
        model: names the model and its revision.
        chunks: how many there are.
        dimension: length of a vector; 0 where no vector has been seen yet.
    """

    digest: str
    model: str
    chunks: int
    dimension: int = 0


def collection_name(digest: str, graph: GraphOptions | None = None) -> str:
    """Return the name of a collection of this content; another graph over it is another collection."""
    return f"{PREFIX}{digest[:16]}" + (f"_{graph.name}" if graph else "")


@dataclass(frozen=True)
class Collection:
    """One collection of a server. Failures of the client go through.

    Attributes:
        client: of the server.
        name: of the collection.
        url: of the server, for messages; empty is in memory.
        cluster: how it is spread and written.
        graph: how it is searched; None compares with every vector.
    """

    client: Any
    name: str
    url: str
    cluster: ClusterOptions
    graph: GraphOptions | None = None

    def info(self) -> Any | None:
        """Return what the server says of it, None where it is not there."""
        return self.client.get_collection(self.name) if self.client.collection_exists(self.name) else None

    def count(self) -> int:
        """Return the exact number of points."""
        return int(self.client.count(self.name, exact=True).count)

    def check(self, info: Any, content: Content) -> None:
        """Check that what is there is for this content.

        Raises:
            CriticalError: it has no digest of ours or another one, other dimensions, or another distance.
        """
        told, vectors = told_of(info), info.config.params.vectors
        if told is None or told.digest != content.digest:
            found = "has no digest of this package's" if told is None else f"holds content {told.digest}"
            raise self._strange(f"{found}, not {content.digest}")
        size, distance = getattr(vectors, "size", None), str(getattr(vectors, "distance", None))
        if distance != "Cosine":
            raise self._strange(f"compares by {distance}, not by Cosine")
        wanted = content.dimension or told.dimension
        if size != wanted:
            raise self._strange(f"holds vectors of {size} numbers, not {wanted}")

    def make(self, content: Content) -> None:
        """Make it, where it is not there; of several who try, one does."""
        try:
            with quiet():
                self.client.create_collection(self.name, **self._config(content))
        except Exception as error:
            if status_of(error) not in (400, 409) or self.info() is None:
                raise
        self._index("doc_id", tenant=False)
        if self.cluster.tenant:
            self._index(f"metadata.{self.cluster.tenant}", tenant=True)

    def claim(self, content: Content) -> None:
        """Say what it holds: that of a collection that is written over."""
        self.client.update_collection(self.name, metadata={OURS: asdict(content)})

    def drop(self) -> None:
        """Remove it."""
        self.client.delete_collection(self.name)

    def search_params(self) -> Any:
        """Return how it is searched; None in memory, which is exact and warns when it is told to be."""
        from qdrant_client.models import QuantizationSearchParams, SearchParams

        if self.graph is None:
            return SearchParams(exact=True) if self.url else None
        small = self.graph.quantize != "none"
        rescored = QuantizationSearchParams(rescore=self.graph.rescore, oversampling=self.graph.oversampling)
        return SearchParams(hnsw_ef=self.graph.ef, quantization=rescored if small else None)

    def _config(self, content: Content) -> Mapping[str, Any]:
        from qdrant_client.models import Distance, HnswConfigDiff, VectorParams

        cluster, graph = self.cluster, self.graph
        vectors = VectorParams(size=content.dimension, distance=Distance.COSINE, on_disk=cluster.on_disk or None)
        # Without a search by graph none is made: building one takes longer than everything else.
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
            self.client.create_payload_index(self.name, key, schema, wait=True)

    def _strange(self, found: str) -> CriticalError:
        return CriticalError(
            f"Collection {self.name} at {self.url or 'memory'} {found}. It was made by something else, or by another "
            f"version. Remove it (rag-harness index drop {self.name}), and the next run makes it anew."
        )


def collection_for(settings: Settings, digest: str) -> Collection:
    """Return the collection of this content on the server that the settings name.

    Raises:
        SettingsError: the URL is none, the key would be sent in clear, or an option has no such value.
    """
    cluster, graph = cluster_options(settings), graph_options(settings)
    client = connect(settings.qdrant_url, settings.qdrant_api_key, cluster.timeout)
    return Collection(client, collection_name(digest, graph), settings.qdrant_url, cluster, graph)


def told_of(info: Any) -> Content | None:
    """Return what a collection says that it holds; None where it is none of ours."""
    told: Any = (info.config.metadata or {}).get(OURS)
    try:
        return Content(**told)
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
