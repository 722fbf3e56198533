"""The digest of an index's content: its chunks in order, and the model. No process needs all chunks at once."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from rag_harness.types import Chunk


class ContentDigest:
    """The digest, to which chunks are added step by step.

    Args:
        model: the name of the embedding model.
        revision: everything besides the name that decides its vectors.
    """

    def __init__(self, model: str, revision: str) -> None:
        self._state = blake2b(f"{model}\0{revision}".encode(), digest_size=16)

    def add(self, said: bytes) -> None:
        """Add ``digested_bytes`` of the next chunks."""
        self._state.update(said)

    def hexdigest(self) -> str:
        """Return the digest of all chunks so far."""
        return self._state.hexdigest()


def digested_bytes(chunks: Iterable[Chunk]) -> bytes:
    """Return the bytes for the digest: ids and texts. The bytes of two lists, joined, are those of the joined list."""
    return b"".join(f"{chunk.chunk_id}\0{chunk.text}\0".encode("utf-8", "surrogatepass") for chunk in chunks)
