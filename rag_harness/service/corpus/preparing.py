"""A document on its way in: cut and embedded, not yet where questions find it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rag_harness.protocols import Store
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.service.corpus.serving_parts import Models
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.settings import Settings
from rag_harness.types import Chunk, Document, IndexSpec, Matrix

_SOLID = re.compile(r"\S")


@dataclass(frozen=True)
class Prepared:
    """What the index takes of a document: row i of ``vectors``, shape (n, d), belongs to ``indexed[i]``."""

    document: Document
    chunks: tuple[Chunk, ...]
    indexed: tuple[Chunk, ...]
    vectors: Matrix

    @property
    def coverage(self) -> float | None:
        """The share of the text's characters, blanks aside, that lie in chunks; None of a text without any."""
        return coverage(self.document.text, self.chunks)


class Preparer:
    """Cuts and embeds documents as a run would, in the thread that ingests.

    Args:
        models: of the server.
        spec: of the experiment's index.
        recorded: vectors that need no model.
        tokens: where token vectors are kept.
    """

    def __init__(self, models: Models, spec: IndexSpec, recorded: CollectionStores, tokens: Store) -> None:
        self._spec, self._stores = spec, recorded
        self._settings: Settings = _keeping_all(models.settings)
        self._embedder = models.stored(spec.embedder, recorded, tokens)

    def prepared(self, documents: Sequence[Document]) -> list[Prepared]:
        """Return what becomes of documents, in their order; they are embedded together.

        Raises:
            ChunkTooLongError, RecordingMissError, ModelCallError: a chunk cannot be embedded.
        """
        retrieval = Retrieval(self._spec, lambda: documents, self._settings, self._stores, self._embedder)
        vectors = self._embedder.embed_documents([chunk.text for chunk in retrieval.indexed])
        chunks, indexed = _by_document(retrieval.cut), _by_document(retrieval.indexed)
        return list(_parted(documents, chunks, indexed, vectors))


def _keeping_all(settings: Settings) -> Settings:
    """Return the settings without what compares documents: that is done when they are all there."""
    from dataclasses import replace

    return replace(settings, near_duplicates=0.0)


def _by_document(chunks: Sequence[Chunk]) -> dict[str, tuple[Chunk, ...]]:
    return {name: tuple(some) for name, some in groupby(chunks, key=lambda chunk: chunk.doc_id)}


def _parted(
    documents: Sequence[Document],
    chunks: dict[str, tuple[Chunk, ...]],
    indexed: dict[str, tuple[Chunk, ...]],
    vectors: Matrix,
) -> Iterator[Prepared]:
    start = 0
    for document in documents:
        read = indexed.get(document.doc_id, ())
        yield Prepared(document, chunks.get(document.doc_id, ()), read, vectors[start : start + len(read)])
        start += len(read)


def coverage(text: str, chunks: Sequence[Chunk]) -> float | None:
    """Return the share of the characters of ``text``, blanks aside, that lie in chunks; None where there are none."""
    solid = len(_SOLID.findall(text))
    if not solid:
        return None
    covered, reached = 0, 0
    for start, end in sorted((chunk.start, chunk.end) for chunk in chunks):
        covered += len(_SOLID.findall(text, max(start, reached), end)) if end > reached else 0
        reached = max(reached, end)
    return covered / solid
