"""Chunks and hits of nothing but text."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.core.types import Chunk, Hit


def chunks_of(texts: Sequence[str]) -> list[Chunk]:
    return [Chunk(f"page.md#chunk_{n}", "page.md", text, 0, len(text)) for n, text in enumerate(texts)]


def hits_of(texts: Sequence[str], scores: Sequence[float] | None = None) -> list[Hit]:
    falling = scores or [1 - n / 100 for n in range(len(texts))]
    pairs = zip(chunks_of(texts), falling, strict=True)
    return [Hit(chunk, score, rank) for rank, (chunk, score) in enumerate(pairs, 1)]
