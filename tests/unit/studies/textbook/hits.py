"""Hits of a book, for the tests of its pipelines."""

from __future__ import annotations

from collections.abc import Sequence

from rag_harness.core.types import Chunk, Hit


def section(text: str, module: int = 1, chapter: int = 1, *below: str) -> Chunk:
    page = f"module-{module}/chapter-{chapter}-title.md"
    about = {"module": module, "chapter": chapter, "module_title": f"M{module}", "url": f"/module-{module}/c{chapter}"}
    return Chunk(f"{page}#{text[:20]}", page, text, section=(f"Title {chapter}", *below), metadata=about)


def near(chunks: Sequence[Chunk], cosines: Sequence[float]) -> list[Hit]:
    return [Hit(chunk, cosine, rank) for rank, (chunk, cosine) in enumerate(zip(chunks, cosines, strict=True), 1)]
