"""What an index holds, as a digest: chunks in their order and the model; no process needs all of it at once."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from rag_harness.types import Chunk


class ContentDigest:
    """Takes chunks as they come.

    Args:
        model: the embedding model, by name.
        revision: what else decides its vectors.
    """

    def __init__(self, model: str, revision: str) -> None:
        self._state = blake2b(f"{model}\0{revision}".encode(), digest_size=16)

    def add(self, said: bytes) -> None:
        """Take what ``said_of`` says of the next chunks."""
        self._state.update(said)

    def hexdigest(self) -> str:
        """Return the digest of all that was taken."""
        return self._state.hexdigest()


def said_of(chunks: Iterable[Chunk]) -> bytes:
    """Return what the digest is made of: ids and texts, so said of two lists it is said of both in one."""
    return b"".join(f"{chunk.chunk_id}\0{chunk.text}\0".encode("utf-8", "surrogatepass") for chunk in chunks)
