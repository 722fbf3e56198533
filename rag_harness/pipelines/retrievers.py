"""The retrieve step: from a query's text to ranked hits."""

from __future__ import annotations

from dataclasses import dataclass

from rag_harness.protocols import Embedder, Index
from rag_harness.types import Hit


@dataclass(frozen=True)
class DenseRetriever:
    """Nearest chunks by cosine."""

    embedder: Embedder
    index: Index

    def retrieve(self, query: str, k: int) -> list[Hit]:
        return self.index.search(self.embedder.embed_queries([query])[0], k)
