"""Chunks as a server keeps them: what a point is called, holds, and is known by when it is there already."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any
from uuid import UUID

from rag_harness.types import Chunk, Matrix

DIGEST = "digest"
"""Key of the payload that says what a point was made of."""


@dataclass(frozen=True)
class Points:
    """Points of one request.

    Attributes:
        ids: their names, UUIDs.
        vectors: shape (n, d); row i belongs to point i.
        payloads: what else is kept of each; ``digest`` says what it was made of.
    """

    ids: Sequence[str]
    vectors: Matrix
    payloads: Sequence[Mapping[str, Any]]

    def __len__(self) -> int:
        return len(self.ids)

    def but(self, there: Mapping[str, str]) -> Points:
        """Return those that are not there with the same digest; ``there`` has digests by id."""
        kept = [n for n, name in enumerate(self.ids) if there.get(name) != self.payloads[n][DIGEST]]
        if len(kept) == len(self.ids):
            return self
        return Points([self.ids[n] for n in kept], self.vectors[kept], [self.payloads[n] for n in kept])


def point_id(chunk: Chunk) -> str:
    """Return the name of a chunk's point."""
    return str(UUID(bytes=blake2b(chunk.chunk_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()))


def batches(
    chunks: Sequence[Chunk], vectors: Matrix, model: str, size: int, positions: Sequence[int] | None = None
) -> Iterator[Points]:
    """Yield the points of chunks, made when they are asked for: no more than those in flight are in memory.

    Args:
        chunks: what is indexed, in order.
        vectors: shape (n, d), row i belongs to chunk i.
        model: names model and revision that made the vectors.
        size: points a batch.
        positions: of each chunk among all that are indexed; the default is that these are all.
    """
    places = range(len(chunks)) if positions is None else positions
    for start in range(0, len(chunks), size):
        some, there = chunks[start : start + size], places[start : start + size]
        payloads = [payload(chunk, position, model) for chunk, position in zip(some, there, strict=True)]
        yield Points([point_id(chunk) for chunk in some], vectors[start : start + size], payloads)


def payload(chunk: Chunk, position: int, model: str) -> dict[str, Any]:
    """Return what is kept of a chunk beside its vector."""
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
