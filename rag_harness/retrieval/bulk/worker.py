"""A worker of bulk ingest. It holds one window at a time, and makes parts, documents with cuts, or vectors."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any

from rag_harness.dataset.data import keeping_of
from rag_harness.dataset.document_languages import with_languages
from rag_harness.dataset.ingest.file_reading import parsed_by
from rag_harness.dataset.knowledge_base import pages_digest
from rag_harness.dataset.library import Library, read_library
from rag_harness.files.sources import json_digest
from rag_harness.models.embedders.cached import CachedEmbedder, Computed
from rag_harness.models.model_names import embedder_name
from rag_harness.models.recording.stores import StoreRoom
from rag_harness.registry import resolve
from rag_harness.retrieval.bulk.about import about_documents
from rag_harness.retrieval.bulk.bulk_messages import DocumentWindow, IngestOpening, Read, ReadyWorker, WindowPart
from rag_harness.retrieval.bulk.files import check_sees
from rag_harness.retrieval.bulk.lent import LentStores
from rag_harness.retrieval.bulk.part_file import part_bytes
from rag_harness.retrieval.bulk.sending import Sender
from rag_harness.retrieval.bulk.slots import SentChunks, Slot, Surveyed, changed
from rag_harness.retrieval.content_digest import digested_bytes
from rag_harness.retrieval.indexes.server.points import point_id
from rag_harness.retrieval.retrieval import Retrieval, spec_of
from rag_harness.settings import access_of


class BulkWorker:
    """Does one job at a time, in its own process or in the caller's."""

    def open(self, opening: IngestOpening) -> ReadyWorker:
        """Prepare the worker.

        Raises:
            PrerequisiteError: this node lacks the files or the model.
        """
        self.settings, self._held = opening.settings, opening.held
        check_sees(opening.probes)
        self.stores = LentStores(StoreRoom(self.settings))
        if opening.sends:
            _ = self._sender
        self._spec = spec_of(self.settings)
        cut = {name: value for name, value in asdict(self._spec).items() if name != "index"}
        self._made_by = self._retrieval([]).identity() | cut
        return ReadyWorker(f"{socket.gethostname()}, process {os.getpid()}", self._made_by | {"parsed_by": parsed_by()})

    def part(self, window: DocumentWindow) -> WindowPart:
        """Read, cut and embed a window."""
        library = self._library(window)
        failed = [*window.failed, *(each.line for each in library.unread)]
        digest = self._digest(library)
        if digest in self._held or not library.documents:
            return WindowPart(window.number, len(window), digest, held=digest in self._held, failed=failed)
        retrieval, before = self._retrieval(library.documents), self._embedder.computed
        chunks = retrieval.cut
        vectors = self._embedder.embed_documents([chunk.text for chunk in chunks])
        self.stores.taken()
        about = {"documents": len(library.documents), "digest": digest, "made_by": self._made_by}
        failed += retrieval.refused_lines
        content = part_bytes(chunks, vectors, about) if chunks else b""
        embedded = self._embedder.computed - before
        return WindowPart(window.number, len(window), digest, content, False, len(chunks), embedded, failed)

    def read(self, window: DocumentWindow) -> Read:
        """Read and cut a window."""
        library = self._library(window)
        _ = self._retrieval(library.documents).cut
        return Read(library.documents, library.unread, library.parsed, self.stores.taken())

    def survey(self, window: DocumentWindow) -> Surveyed:
        """Read and cut a window, and return its survey, without vectors."""
        library = self._library(window)
        retrieval = self._retrieval(library.documents)
        chunks = retrieval.cut
        failed = [*window.failed, *(each.line for each in library.unread), *retrieval.refused_lines]
        first = chunks[0].text if chunks else ""
        points, told = len({chunk.chunk_id for chunk in chunks}), about_documents(library.documents, chunks)
        said = digested_bytes(chunks)
        counts = (len(chunks), points, first, told, library.parsed)
        return Surveyed(len(window), said, _digest_of(said), *counts, failed, self.stores.taken())

    def width(self, text: str) -> int:
        """Return the dimension of the vectors, by embedding a document's text."""
        vector = self._embedder.embed_documents([text])
        self.stores.taken()  # dropped: the worker that sends this chunk counts it
        return int(vector.shape[1])

    def send(self, window: DocumentWindow, slot: Slot) -> SentChunks:
        """Read and cut a window again, then embed and send the chunks that the server lacks.

        Raises:
            DataError: the chunks have changed since the survey.
            CriticalError: the server refuses them.
        """
        chunks = self._retrieval(self._library(window).documents).cut
        if _digest_of(digested_bytes(chunks)) != slot.digest:
            raise changed(chunks)
        places, before = self._sender.lacking(chunks, slot), self._embedder.computed
        if not places:
            return SentChunks(len(chunks), 0, 0, None)  # no model needed
        new = [chunks[place] for place in places]
        vectors = self._embedder.embed_documents([chunk.text for chunk in new])
        self.stores.taken()
        self._sender.send(new, vectors, slot, places)
        last = point_id(new[-1]), vectors[-1].copy()
        return SentChunks(len(chunks), len(new), self._embedder.computed - before, last)

    def embed(self, texts: Sequence[str], role: str, with_tokens: bool) -> Computed:
        """Return the vectors of texts."""
        return self._embedder.compute(texts, role, with_tokens)

    def close(self) -> None:
        """Close the worker."""

    @property
    def cassettes(self) -> Any:
        """Always None: no embedder is recorded over HTTP."""
        return None

    @cached_property
    def _embedder(self) -> CachedEmbedder:
        settings = self.settings
        inner: Any = resolve("embedders", embedder_name(settings))(self)
        refusal = access_of(settings).refusal(local=embedder_name(settings) != "openai")
        vectors = self.stores.open("vectors", inner.model, inner.revision)
        return CachedEmbedder(inner, vectors, refuse=refusal, may_cut=bool(settings.dataset))

    @cached_property
    def _sender(self) -> Sender:
        return Sender(self.settings, f"{self._embedder.model}@{self._embedder.revision}")

    def _retrieval(self, documents: Sequence[Any]) -> Retrieval:
        return Retrieval(self._spec, lambda: documents, self.settings, self.stores, self._embedder)

    def _library(self, window: DocumentWindow) -> Library:
        if not window.sources:
            return Library(tuple(with_languages(window.documents, keeping_of(self.settings).language)), ())
        # The caller may have another current folder. Relative paths start from the caller's.
        said = {Path(self.settings.rootdir) / each.file: each.file for each in window.sources}
        sources = [replace(each, file=Path(self.settings.rootdir) / each.file) for each in window.sources]
        # No two workers read the same file, so none waits for another.
        library = read_library(sources, (), replace(keeping_of(self.settings), apart=True))
        return replace(library, unread=tuple(replace(each, file=said[each.file]) for each in library.unread))

    def _digest(self, library: Library) -> str:
        return json_digest([pages_digest(list(library.documents)), self._made_by])


def _digest_of(said: bytes) -> bytes:
    return blake2b(said, digest_size=16).digest()
