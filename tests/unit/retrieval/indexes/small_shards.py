"""Small shards of texts. It imports no test tool, for processes that a test kills import it."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from rag_harness.core.types import Matrix
from rag_harness.retrieval.indexes.edge import EdgeIndex
from rag_harness.retrieval.indexes.shard_files import ShardFolder
from tests.unit.hits import chunks_of

WORDS = [f"text {n}" for n in range(60)]


def rows_of(texts: Sequence[str]) -> Matrix:
    """Return the vector of each text: the same text has the same, as an embedder's."""
    found = [np.random.default_rng(list(text.encode())).normal(size=24) for text in texts]
    rows: Matrix = np.array(found, np.float32).reshape(-1, 24)
    return rows


def folder_of(folder: Path, texts: Sequence[str], embedder: str = "e") -> ShardFolder:
    digest = blake2b("\0".join(texts).encode(), digest_size=16).hexdigest()
    return ShardFolder(folder / f"{digest[:16]}-edge", digest, embedder)


def indexed(folder: Path, texts: Sequence[str], embedder: str = "e", exact: bool = True) -> EdgeIndex:
    index = EdgeIndex(folder_of(folder, texts, embedder), exact=exact)
    index.upsert(chunks_of(list(texts)), rows_of(texts))
    return index
