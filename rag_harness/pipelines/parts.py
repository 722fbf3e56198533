"""What pipelines are made of, chosen by the settings and made on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, cast

from rag_harness.chunking import ChunkingSettings
from rag_harness.dataset.beir import BeirDataset, read_beir, whole_chunks
from rag_harness.dataset.knowledge_base import digest_of, read_knowledge_base
from rag_harness.errors import ModelCallError, RagHarnessError, RecordingMissError, SettingsError
from rag_harness.files.log import log
from rag_harness.models.embedders.cached import CachedEmbedder
from rag_harness.models.endpoints import Endpoints
from rag_harness.models.names import embedder_name, reranker_name
from rag_harness.prompts import Prompts, load_prompts
from rag_harness.protocols import ChatModel, Index, LexicalIndex, Reranker, Retriever
from rag_harness.recording.cassettes import Cassettes
from rag_harness.recording.scrubbing import secrets_of
from rag_harness.recording.stores import StoreRoom
from rag_harness.registry import resolve
from rag_harness.retrieval.cuts import CHUNKING_VERSION, RecordedChunking
from rag_harness.retrieval.lexical import Bm25Index
from rag_harness.retrieval.retrievers import DenseRetriever
from rag_harness.retrieval.shared import SharedReranker, SharedRetriever
from rag_harness.settings import Settings
from rag_harness.types import Chunk, Document, Matrix


class Lazy:
    """Stands for a part until it is first used: a run that only resumes builds no index."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make
        self._made: Any = None

    def _get(self) -> Any:
        # No property: an AttributeError inside one would call __getattr__ again, and again.
        if self._made is None:
            self._made = self._make()
        return self._made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._get(), name)

    def __len__(self) -> int:
        return len(self._get())


class RunParts:
    """The parts of one run in one process."""

    def __init__(self, settings: Settings, scrub: Callable[[str], str] | None = None) -> None:
        self.settings, self.scrub = settings, scrub
        self.endpoints = Endpoints(settings, lambda: self.cassettes, lambda: self.stores)

    @cached_property
    def stores(self) -> StoreRoom:
        return StoreRoom(self.settings)

    @cached_property
    def cassettes(self) -> Cassettes:
        """The recorded answers of the profile."""
        settings = self.settings
        return Cassettes(settings.path(settings.cassettes) / settings.profile, secrets_of(settings), self.scrub)

    @cached_property
    def collection(self) -> BeirDataset | None:
        """The public collection that stands in for knowledge base and golden set, if the settings name one."""
        if not self.settings.dataset:
            return None
        kind, _, path = self.settings.dataset.partition(":")
        if kind != "beir" or not path:
            raise SettingsError(f"rag_dataset is {self.settings.dataset!r}. Name a BEIR folder or zip: beir:PATH")
        return read_beir(Path(path) if Path(path).is_absolute() else self.settings.path(path))

    @cached_property
    def documents(self) -> list[Document]:
        """The pages of the knowledge base."""
        if self.collection is not None:
            return self.collection.documents
        documents = read_knowledge_base(self.settings.path(self.settings.kb_dir))
        log.info("Read %d documents from %s", len(documents), self.settings.kb_dir)
        return documents

    @cached_property
    def kb_digest(self) -> str:
        """Digest of all pages and their metadata."""
        return digest_of(self.documents)

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The pages, cut into chunks that the embedder reads whole; a public collection's documents stay whole."""
        if self.collection is not None:
            return whole_chunks(self.documents)
        size = min(self.settings.chunk_size, self.embedder.max_tokens)
        overlap = min(self.settings.chunk_overlap, size // 4)
        chunks = RecordedChunking(
            self.stores.open("chunks", self.embedder.model, f"{size}-{overlap}-{CHUNKING_VERSION}"),
            ChunkingSettings(size, overlap),
            self.embedder.tokenizer,
        ).chunks(self.documents)
        log.info("Cut %d documents into %d chunks", len(self.documents), len(chunks))
        return chunks

    @cached_property
    def content_digest(self) -> str:
        state = blake2b(f"{self.embedder.model}\0{self.embedder.revision}".encode(), digest_size=16)
        for chunk in self.chunks:
            state.update(f"{chunk.chunk_id}\0{chunk.text}\0".encode("utf-8", "surrogatepass"))
        return state.hexdigest()

    @cached_property
    def embedder(self) -> CachedEmbedder:
        """The embedder that the settings name, behind its store."""
        inner: Any = resolve("embedders", embedder_name(self.settings))(self)
        wants_tokens = reranker_name(self.settings) == "late-interaction" and hasattr(inner, "embed_with_tokens")
        tokens = self.stores.open("tokens", inner.model, inner.revision) if wants_tokens else None
        vectors = self.stores.open("vectors", inner.model, inner.revision)
        return CachedEmbedder(inner, vectors, tokens, refuse=self._why_not_embed(), may_cut=bool(self.settings.dataset))

    @property
    def token_embedder(self) -> CachedEmbedder:
        return self.embedder

    def _why_not_embed(self) -> str:
        if self.settings.mode == "replay":
            return "Record it: --rag-mode=record"
        if self.settings.mode == "auto" and embedder_name(self.settings) == "openai":
            return "Mode auto calls no network model. Record it: --rag-mode=record"
        return ""

    @cached_property
    def lexical(self) -> LexicalIndex:
        return cast("LexicalIndex", Lazy(lambda: Bm25Index(self.chunks)))

    @cached_property
    def index(self) -> Index:
        """The index over all chunks, built when it is first searched."""
        return cast("Index", Lazy(self._build_index))

    def _build_index(self) -> Index:
        index: Index = resolve("indexes", self.settings.index)(self)
        with self._building():
            index.upsert(self.chunks, self._chunk_vectors())
        return index

    def _chunk_vectors(self) -> Matrix:
        try:
            return self.embedder.embed_documents([chunk.text for chunk in self.chunks])
        except RecordingMissError as miss:
            lost = [chunk.chunk_id for chunk in self.chunks if chunk.text in set(miss.texts)]
            named = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
            raise RecordingMissError(f"{named}: {miss}", miss.texts) from None

    @contextmanager
    def _building(self) -> Iterator[None]:
        """Compute in one process at a time, and write what came of it even where a later batch failed."""
        with _alone(self.settings):
            try:
                yield
            finally:
                self.stores.flush()

    @cached_property
    def retriever(self) -> Retriever:
        """The first stage of E2 to E4."""
        return SharedRetriever(DenseRetriever(self.embedder, self.index))

    @cached_property
    def reranker(self) -> Reranker:
        """The reranker that the settings name."""
        return SharedReranker(resolve("rerankers", reranker_name(self.settings))(self), self._building)

    @cached_property
    def chat(self) -> ChatModel:
        """The chat model that the settings name."""
        return self.endpoints.chat()

    def prompts(self, experiment: str) -> Prompts:
        """Return the templates of an experiment."""
        folder = self.settings.path(self.settings.prompts) if self.settings.prompts else None
        return load_prompts(experiment, folder)

    def prepare(self, queries: Sequence[str]) -> None:
        """Build the index and embed ``queries`` in one go, once for all workers: they then need no model."""
        len(self.index)
        with self._building():
            self._embed_ahead(list(dict.fromkeys(queries)))

    def _embed_ahead(self, queries: list[str]) -> None:
        try:
            self.embedder.embed_queries(queries)
        except RagHarnessError:
            # One of them cannot be embedded (too long, not recorded): its own trial will say so.
            for query in queries if not self._why_not_embed() else ():
                with suppress(ModelCallError):
                    self.embedder.embed_queries([query])


@contextmanager
def _alone(settings: Settings) -> Iterator[None]:
    """Let one process build at a time: the others find vectors and collections made when their turn comes."""
    from filelock import FileLock

    folder = settings.path(settings.cache_dir)
    if settings.mode == "replay" or not os.access(folder.parent, os.W_OK):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "building.lock"):
        yield
