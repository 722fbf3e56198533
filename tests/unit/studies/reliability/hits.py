"""Hits of a small shop's pages, with the scores that a test wants."""

from __future__ import annotations

from rag_harness.core.types import Chunk, Hit


def hit(text: str, page: str = "returns.md", number: int = 0, rank: int = 1, **scores: float) -> Hit:
    chunk = Chunk(f"{page}#chunk_{number}", page, text, 0, len(text))
    return Hit(chunk, scores.get("rrf", 0.5), rank, "hybrid", scores)
