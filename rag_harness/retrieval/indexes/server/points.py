"""Points of a server, made from chunks: id, vector, payload, and the digest that identifies an existing point."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from uuid import UUID

from rag_harness.types import Chunk, Matrix

DIGEST = "digest"
"""Key in the payload of the digest of a point's content."""


@dataclass(frozen=True)
class Points:
    """The points of one request.

    Attributes:
        ids: UUIDs.
        vectors: shape (n, d); row i belongs to point i.
        payloads: the payload of each point; its ``digest`` is that of the content.
    """

    ids: Sequence[str]
    vectors: Matrix
    payloads: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.ids)

    def but(self, there: Mapping[str, str]) -> Points:
        """Return the points that the server lacks with the same digest; ``there`` has its digests by id."""
        kept = [n for n, name in enumerate(self.ids) if there.get(name) != self.payloads[n][DIGEST]]
        if len(kept) == len(self.ids):
            return self
        return Points([self.ids[n] for n in kept], self.vectors[kept], [self.payloads[n] for n in kept])


def point_id(chunk: Chunk) -> str:
    """Return the id of a chunk's point."""
    return str(UUID(bytes=blake2b(chunk.chunk_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def point_batches(
    chunks: Sequence[Chunk], vectors: Matrix, model: str, size: int, positions: Sequence[int] | None = None
) -> Iterator[Points]:
    """Yield the points of chunks in batches. Each batch is made on demand, so memory holds only those in flight.

    Args:
        chunks: the chunks, in order.
        vectors: shape (n, d), row i belongs to chunk i.
        model: model and revision of the vectors.
        size: points in a batch.
        positions: the position of each chunk among all chunks; by default these are all.
    """
    places = range(len(chunks)) if positions is None else positions
    for start in range(0, len(chunks), size):
        some, there = chunks[start : start + size], places[start : start + size]
        payloads = [payload(chunk, position, model) for chunk, position in zip(some, there, strict=True)]
        yield Points([point_id(chunk) for chunk in some], vectors[start : start + size], payloads)


def payload(chunk: Chunk, position: int, model: str) -> dict[str, Any]:
    """Return the payload of a chunk's point."""
    made_of = f"{model}\0{chunk.chunk_id}\0{chunk.text}".encode("utf-8", "surrogatepass")
    return {
        "position": position,
        "chunk_id": chunk.chunk_id,
        "doc_id": chunk.doc_id,
        "text": chunk.text,
        "section": list(chunk.section),
        "metadata": dict(chunk.metadata),
        DIGEST: blake2b(made_of, digest_size=16).hexdigest(),
    }
