"""Qdrant by its client: a server or cluster by its URL, or the client's memory mode where Edge has no wheel.

Not tested against a server: TLS, what a key may do, how a cluster spreads and repeats, what survives a server's crash.
What is sent is tested: a stub of the REST API refuses whatever does not validate against the client's own models.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from rag_harness.errors import CriticalError, SettingsError
from rag_harness.files.log import log
from rag_harness.protocols import RetrievalParts
from rag_harness.recording.network_guard import LOOPBACK
from rag_harness.types import Chunk, Hit, Matrix, Vector

_BATCH = 256
_RETRIES = 3


class QdrantIndex:
    """One collection, cosine distance, one point a chunk with text and metadata as payload.

    Args:
        url: a Qdrant server or cluster; empty is in memory.
        collection: its name. On a server it carries the content's digest, so a collection that is there already and
            is complete holds the same chunks and vectors and is not built again.
        overwrite: write all points of a server's collection again. In place: other workers may be searching it.
        api_key: sent with each request, over TLS or to this machine alone.
    """

    def __init__(
        self,
        url: str = "",
        collection: str = "rag_harness",
        overwrite: bool = False,
        client: Any = None,
        api_key: str = "",
    ) -> None:
        self._client = client or connect(url, api_key)
        self._search = exact() if url else None
        self._collection, self._overwrite = collection, overwrite
        self._chunks: list[Chunk] = []
        self._positions: dict[str, int] = {}

    def open(self, chunks: Sequence[Chunk]) -> bool:
        """Return whether the server has a complete collection of these chunks, and search it from now on."""
        self._take(chunks)
        try:
            return self._is_complete(len(self._positions))
        except Exception as error:
            raise CriticalError(f"The Qdrant index does not answer: {type(error).__name__}: {error}") from error

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Store the chunks, unless a complete collection of that name is there."""
        self._take(chunks)
        try:
            if not self._is_complete(len(self._positions)):
                self._build(chunks, vectors)
            info = self._client.get_collection(self._collection)
        except Exception as error:
            raise CriticalError(f"The Qdrant index cannot be built: {type(error).__name__}: {error}") from error
        log.info("Indexed %d chunks (collection %s, %s)", len(chunks), self._collection, info.status)

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine, exact; equal scores in the order of the chunks."""
        try:
            points = self._client.query_points(
                self._collection, query=vector, limit=k, search_params=self._search, with_payload=False
            ).points
        except Exception as error:
            raise CriticalError(f"The Qdrant index does not answer: {type(error).__name__}: {error}") from error
        found = sorted((-point.score, self._positions[point.id]) for point in points)
        return [Hit(self._chunks[position], -float(score), n) for n, (score, position) in enumerate(found, 1)]

    def __len__(self) -> int:
        return len(self._chunks)

    def _take(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = list(chunks)
        self._positions = {_point_id(chunk): position for position, chunk in enumerate(self._chunks)}

    def _is_complete(self, wanted: int) -> bool:
        return not self._overwrite and self._count() == wanted

    def _count(self) -> int:
        """Return the number of points, -1 where there is no collection."""
        if not self._client.collection_exists(self._collection):
            return -1
        return int(self._client.count(self._collection, exact=True).count)

    def _build(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        from qdrant_client.models import Distance, VectorParams

        if self._count() > len(chunks):
            self._client.delete_collection(self._collection)
        if not self._client.collection_exists(self._collection):
            self._client.create_collection(
                self._collection, vectors_config=VectorParams(size=vectors.shape[1], distance=Distance.COSINE)
            )
        with quiet():
            # Batch by batch from a generator: no more than one batch of points is in memory.
            self._client.upload_points(
                self._collection, _points(chunks, vectors), batch_size=_BATCH, max_retries=_RETRIES, wait=True
            )


def _points(chunks: Sequence[Chunk], vectors: Matrix) -> Iterator[Any]:
    from qdrant_client.models import PointStruct

    for position, chunk in enumerate(chunks):
        yield PointStruct(id=_point_id(chunk), vector=vectors[position].tolist(), payload=_payload(chunk, position))


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the client from warning of what is known."""
    with warnings.catch_warnings():
        # In memory it warns beyond 20,000 points: docs say when to use a server. Batches that are sent again are
        # the client's to count.
        warnings.filterwarnings("ignore", message="Local mode is not recommended|Batch upload failed")
        # Of a key in clear; to this machine alone, see _refuse_open_key.
        warnings.filterwarnings("ignore", message="Api key is used with an insecure connection")
        yield


def _point_id(chunk: Chunk) -> str:
    return str(UUID(bytes=blake2b(chunk.chunk_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def _payload(chunk: Chunk, position: int) -> dict[str, Any]:
    return {
        "position": position,
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.doc_id,
        "text": chunk.text,
        "section": list(chunk.section),
        "metadata": dict(chunk.metadata),
    }


def exact() -> Any:
    """Return parameters of a search that compares with every vector."""
    # A server searches approximately unless it is told not to; the index in memory is exact, and warns when told.
    from qdrant_client.models import SearchParams

    return SearchParams(exact=True)


def connect(url: str, api_key: str) -> Any:
    """Return a client of the server at ``url``; empty is in memory.

    Raises:
        SettingsError: the URL is none, or the key would be sent in clear.
    """
    if url and not url.startswith(("http://", "https://")):
        raise SettingsError(
            f"rag_qdrant_url is {url!r}, which is no URL of a server. A local path is refused: Qdrant's file mode "
            f"serves one process at a time, so workers would lock each other out. Leave it empty for an index in this "
            f"process, or give a server such as http://127.0.0.1:6333."
        )
    _refuse_open_key(url, api_key)
    from qdrant_client import QdrantClient

    if not url:
        return QdrantClient(":memory:")
    with quiet():
        # The check runs in a thread and warns there; a dead server is reported when the index is built.
        return QdrantClient(url=url, api_key=api_key or None, timeout=30, check_compatibility=False)


def _refuse_open_key(url: str, api_key: str) -> None:
    parts = urlsplit(url)
    if api_key and parts.scheme == "http" and parts.hostname not in LOOPBACK:
        raise SettingsError(
            f"A key for Qdrant is set, but rag_qdrant_url is {parts.scheme}://{parts.hostname}: without TLS whoever is "
            f"on the way can read the key, so it is not sent. Use https://, or unset QDRANT_API_KEY if the server asks "
            f"for none."
        )


def create(parts: RetrievalParts) -> QdrantIndex:
    """Return the index that the settings name, for the content of that digest."""
    settings = parts.settings
    name = f"rag_harness_{parts.content_digest[:16]}"
    return QdrantIndex(settings.qdrant_url, name, settings.overwrite, api_key=settings.qdrant_api_key)
