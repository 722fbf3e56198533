"""Embedding of many chunks by a local model, in steps that can be reported: a part of 256 takes a CPU a minute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from rag_harness.models.model_names import embedder_name
from rag_harness.models.token_batches import token_batches
from rag_harness.settings import Settings
from rag_harness.types import TokenVectors
from rag_harness.work.reporting import report

if TYPE_CHECKING:
    from rag_harness.models.embedders.cached import CachedEmbedder, Computed

_LOCAL = frozenset({"sentence-transformers", "onnx"})


@contextmanager
def reported_batches(embedder: CachedEmbedder, settings: Settings) -> Iterator[None]:
    """Report each batch that a local model computes in the block. Services and other workers have steps of their own.

    The batches are those that the model makes of a part anyway. So the vectors are the same to the last digit.
    """
    if embedder.elsewhere is not None or embedder_name(settings) not in _LOCAL:
        yield
        return

    def embed(parts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[Computed]:
        done, total = 0, sum(map(len, parts))
        for part in parts:
            counts = [min(count, embedder.max_tokens) for count in embedder.tokenizer().count(part)]
            vectors, tokens = np.empty((len(part), embedder.dimension), np.float32), dict[int, TokenVectors]()
            for positions in token_batches(counts):
                vectors[positions], made = embedder.compute([part[each] for each in positions], role, with_tokens)
                tokens |= zip(positions, made or (), strict=False)
                done += len(positions)
                if done < total:
                    report("embedding", done, total, "chunks")
            yield vectors, [tokens[each] for each in range(len(part))] if with_tokens else None

    embedder.elsewhere = embed
    try:
        yield
    finally:
        embedder.elsewhere = None
