"""Check that index and queries have vectors of the same model: one clear error instead of many failed tests."""

from __future__ import annotations

import numpy as np

from rag_harness.errors import CriticalError
from rag_harness.retrieval.retrieval import Retrieval

SAMPLE = 20
_LENGTH_TOLERANCE = 1e-3


def check_compatible(retrieval: Retrieval, query: str) -> None:
    """Check the vectors of chunks and of ``query``, and that sampled chunks find themselves first.

    Raises:
        CriticalError: dimensions differ, vectors are not finite or not of unit length, or a chunk's own text finds
            another chunk: the index holds vectors of another model, revision or text.
    """
    chunks = retrieval.indexed[:: max(1, len(retrieval.indexed) // SAMPLE)][:SAMPLE]
    vectors = retrieval.embedder.embed_documents([chunk.text for chunk in chunks])
    asked = retrieval.embedder.embed_queries([query])
    _check_vectors("query", asked, vectors.shape[1])
    _check_vectors("chunk", vectors, vectors.shape[1])
    lost = []
    for chunk, vector in zip(chunks, vectors, strict=True):
        found = retrieval.index.search(vector, 1)
        if not found or found[0].chunk.text != chunk.text:
            lost.append((chunk.chunk_id, found[0].chunk.chunk_id if found else "nothing"))
    embedder = retrieval.embedder
    if lost:
        wanted, found_first = lost[0]
        raise CriticalError(
            f"Index and embedder do not match: {len(lost)} of {len(chunks)} sampled chunks do not find themselves, "
            f"e.g. the text of {wanted} finds {found_first} first. The index holds vectors of another model, revision "
            f"or text than {embedder.model}@{embedder.revision}. Build it again: --rag-overwrite, or "
            f"delete {retrieval.settings.cache_dir}/."
        )


def _check_vectors(kind: str, vectors: np.ndarray, dimension: int) -> None:
    if vectors.shape[1] != dimension:
        raise CriticalError(f"The {kind} vectors have {vectors.shape[1]} dimensions, the chunks' {dimension}.")
    if not np.isfinite(vectors).all():
        raise CriticalError(f"A {kind} vector is not finite: its cosine means nothing.")
    off = np.abs(np.linalg.norm(vectors, axis=1) - 1).max()
    if off > _LENGTH_TOLERANCE:
        raise CriticalError(f"A {kind} vector is not of unit length (off by {off:.3g}): cosine and dot product differ.")
