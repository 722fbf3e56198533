"""A document on its way in: cut and embedded, not yet where questions find it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rag_harness.protocols import Stores
from rag_harness.recording.store import key_of
from rag_harness.retrieval.retrieval import Retrieval
from rag_harness.service.corpus.models import Models
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.service.corpus.token_store import TokenStore
from rag_harness.settings import access_of
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
        recorded: cuts and vectors that need no model.
        tokens: where token vectors are kept.
    """

    def __init__(self, models: Models, spec: IndexSpec, recorded: Stores | None, tokens: TokenStore) -> None:
        self._models, self._spec, self._recorded, self._tokens = models, spec, recorded, tokens
        # What compares documents waits until they are all there.
        self._settings = replace(models.settings, near_duplicates=0.0)

    def prepared(self, documents: Sequence[Document]) -> list[Prepared]:
        """Return what becomes of documents, in their order; they are embedded together.

        Raises:
            ChunkTooLongError, RecordingMissError, ModelCallError: a chunk cannot be embedded.
        """
        stores = CollectionStores(self._recorded, {}, bounded=False)
        embedder = self._models.stored(self._spec.embedder, stores, self._tokens)
        retrieval = Retrieval(self._spec, lambda: documents, self._settings, stores, embedder)
        vectors = embedder.embed_documents([chunk.text for chunk in retrieval.indexed])
        chunks, indexed = _by_document(retrieval.cut), _by_document(retrieval.indexed)
        return list(_parted(documents, chunks, indexed, vectors))

    def without_tokens(self, texts: Sequence[str]) -> list[str]:
        """Return the texts whose token vectors a question would have to compute: their vectors came without."""
        inner = self._models.embedder(self._spec.embedder, ingests=True)
        if not self._models.wants_tokens(inner) or not access_of(self._models.settings).calls_local:
            return []
        unique = list(dict.fromkeys(texts))
        lacking = self._tokens.lacks([key_of("document", text) for text in unique])
        missing = [text for text, lacks in zip(unique, lacking, strict=True) if lacks]
        if self._recorded is None:
            return missing
        there = self._recorded.open("tokens", inner.model, inner.revision).get([key_of("document", t) for t in missing])
        return [text for text, array in zip(missing, there, strict=True) if array is None]

    def add_tokens(self, texts: Sequence[str]) -> None:
        """Compute and keep the token vectors of texts."""
        stores = CollectionStores(None, {}, bounded=False)
        self._models.stored(self._spec.embedder, stores, self._tokens).token_vectors(texts, "document")


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
