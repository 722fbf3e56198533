"""Points of a server, made from chunks: the id, which is made of the content, and the payload."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from uuid import UUID

from rag_harness.types import Chunk


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
