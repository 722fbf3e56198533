"""``Retrieval``: documents cut, embedded and indexed under one ``IndexSpec``, with retrievers and rerankers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rag_harness.errors import ModelCallError, RagHarnessError, RecordingMissError, UnreadableError
from rag_harness.files.log import log
from rag_harness.models.model_names import embedder_name, reranker_name
from rag_harness.protocols import Index, LexicalIndex, PersistentIndex, Reranker, Retriever, Stores
from rag_harness.registry import module_of, resolve
from rag_harness.registry.noted_parts import NotedParts, is_noting, note, noting
from rag_harness.registry.own_parts import is_own, stated_fingerprint
from rag_harness.registry.revisions import REVISIONS
from rag_harness.retrieval.building import building_alone
from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
from rag_harness.retrieval.content_digest import ContentDigest, digested_bytes
from rag_harness.retrieval.cuts import RecordedCuts
from rag_harness.retrieval.duplicates import duplicates
from rag_harness.retrieval.duplicates import source as duplicates_source
from rag_harness.retrieval.embedding_steps import reported_batches
from rag_harness.retrieval.indexes.server.server_options import graph_options
from rag_harness.retrieval.lexical import Bm25Index
from rag_harness.retrieval.retrievers import DenseRetriever, LexicalRetriever
from rag_harness.retrieval.shared import SharedReranker, SharedRetriever
from rag_harness.retrieval.windows import WindowedRetriever, chunk_of_window, windows_of
from rag_harness.retrieval.windows import source as windows_source
from rag_harness.settings import Settings, access_of, affecting
from rag_harness.shown.terminal import line as shown
from rag_harness.types import Chunk, Document, IndexSpec, Matrix

if TYPE_CHECKING:
    from rag_harness.models.embedders.cached import CachedEmbedder


def spec_of(settings: Settings) -> IndexSpec:
    """Return the spec of the options."""
    chunker = "whole" if settings.dataset else settings.chunker
    return IndexSpec(chunker, settings.chunk_size, settings.chunk_overlap, settings.embed_model, settings.index)


class Retrieval:
    """Retrieval from one set of documents under one spec. Each part is made on first use.

    Adapters of indexes and rerankers get this object: it implements ``protocols.RetrievalParts``.

    Args:
        spec: how the documents become an index.
        documents: returns the pages; called once.
        settings: the settings of the run.
        stores: the stores of cuts, vectors and scores.
        embedder: the embedder ``spec.embedder``.
    """

    def __init__(
        self,
        spec: IndexSpec,
        documents: Callable[[], Sequence[Document]],
        settings: Settings,
        stores: Stores,
        embedder: CachedEmbedder,
    ) -> None:
        self.spec: IndexSpec = spec
        self.stores: Stores = stores
        self.embedder: CachedEmbedder = embedder
        self.settings: Settings = replace(
            settings,
            chunk_size=spec.chunk_size,
            chunk_overlap=spec.overlap,
            embed_model=spec.embedder,
            index=spec.index,
            chunker=spec.chunker,
        )
        self._documents = documents
        self.refused: dict[str, str] = {}
        self._rerankers: dict[str, tuple[SharedReranker, NotedParts]] = {}

    @property
    def token_embedder(self) -> CachedEmbedder:
        """The embedder, if it gives token vectors."""
        return self.embedder

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks of the pages. The embedder can read each whole, unless the spec has windows."""
        least = self.settings.near_duplicates
        if not least:
            return self.cut
        left_out = {duplicate.chunk.chunk_id for duplicate in duplicates(self.cut, least, self.stores)}
        log.info("Left out %d chunks that are like another", len(left_out))
        return [chunk for chunk in self.cut if chunk.chunk_id not in left_out]

    @cached_property
    def cut(self) -> list[Chunk]:
        """All chunks of the pages, including near-duplicates."""
        documents, lengths = self._documents(), self._lengths
        named = [self.spec.chunker, lengths.max_tokens, lengths.overlap, *([lengths.least] if lengths.least else [])]
        kept = self.stores.open(
            "chunks", self.embedder.model, "-".join([*map(str, named), self._source]), may_keep=self._may_keep_cuts
        )
        cuts = RecordedCuts(kept, self._chunker, lengths, self.embedder.tokenizer)
        chunks = cuts.chunks(documents)
        self._refuse(cuts.refused)
        log.info("Cut %d documents into %d chunks", len(documents), len(chunks))
        return chunks

    @property
    def _may_keep_cuts(self) -> bool:
        """Whether cuts are kept: not those of a user's own chunker without a fingerprint."""
        name = self.spec.chunker
        return not is_own(module_of("chunkers", name)) or bool(self._source)

    def _refuse(self, refused: Mapping[str, str]) -> None:
        self.refused = dict(refused)
        if refused and self.settings.unreadable != "skip":
            leave_out = "Or leave such documents out of the run: --rag-unreadable=skip"
            raise UnreadableError("\n".join([*self.refused_lines, leave_out]))
        for line in self.refused_lines:
            log.warning("Left out: %s", line)

    @property
    def refused_lines(self) -> list[str]:
        """A line for each document that passes a limit of cutting."""
        return [f"{shown(doc_id)}: {shown(why)}." for doc_id, why in self.refused.items()]

    @cached_property
    def indexed(self) -> list[Chunk]:
        """The content of the index: the chunks, or windows of chunks that the embedder cannot read whole."""
        return windows_of(self.chunks, self.embedder, self.stores) if self.spec.windows else self.chunks

    @cached_property
    def chunk_of_window(self) -> dict[str, Chunk]:
        """The chunk of each text of the index, by the text's id."""
        return chunk_of_window(self.chunks, self.indexed)

    @property
    def _lengths(self) -> ChunkingSettings:
        size = self.spec.chunk_size if self.spec.windows else min(self.spec.chunk_size, self.embedder.max_tokens)
        return ChunkingSettings(size, min(self.spec.overlap, size // 4), min(self.spec.least, size))

    @cached_property
    def _source(self) -> str:
        """The revision of the chunker, or what a user's own states. Cuts of another are stored separately."""
        module = module_of("chunkers", self.spec.chunker)
        if is_own(module):
            return stated_fingerprint(self._chunker())
        return REVISIONS[f"chunkers/{module.rpartition('.')[2]}"]

    def _chunker(self) -> Chunker:
        chunker: Chunker = resolve("chunkers", self.spec.chunker)
        return chunker

    @cached_property
    def content_digest(self) -> str:
        """Digest of the index's content and the embedding model. Indexes with the same digest have the same content."""
        digest = ContentDigest(self.embedder.model, self.embedder.revision)
        for chunk in self.indexed:
            digest.add(digested_bytes([chunk]))
        if not self.embedder.may_keep:
            # A user's own embedder may give the same texts other vectors now, so the vectors themselves count.
            digest.add(self._vectors().tobytes())
        return digest.hexdigest()

    @cached_property
    def index(self) -> Index:
        """The index over all chunks, or over their windows."""
        index: Index = resolve("indexes", self.spec.index)(self)
        with self.building():
            is_there = isinstance(index, PersistentIndex) and index.open(self.indexed)
            # A recording must be complete, because a replay may have no index of an earlier run.
            vectors = self._vectors() if access_of(self.settings).records or not is_there else None
            if vectors is not None and not is_there:
                index.upsert(self.indexed, vectors)
        return index

    @property
    def lexical(self) -> LexicalIndex:
        """BM25 over all chunks."""
        if is_noting():
            self._note_chunks()
            note("words", Bm25Index.__module__)
        return self._lexical

    @cached_property
    def _lexical(self) -> LexicalIndex:
        return Bm25Index(lambda: self.chunks)

    @property
    def dense(self) -> Retriever:
        """Nearest chunks by cosine. Simultaneous requests of trials are shared."""
        if is_noting():
            self._note_chunks()
            note("retriever", SharedRetriever.__module__, type(self._dense.inner).__module__)
            note("index", module_of("indexes", self.spec.index), **self._searched())
            note("embedder", module_of("embedders", embedder_name(self.settings)), type(self.embedder).__module__)
            note("", embedded_by=[self.embedder.model, self.embedder.revision])
        return self._dense

    @cached_property
    def _dense(self) -> SharedRetriever:
        return SharedRetriever(WindowedRetriever(self) if self.spec.windows else DenseRetriever(self))

    @property
    def words(self) -> Retriever:
        """Best chunks by BM25."""
        _ = self.lexical
        note("retriever", SharedRetriever.__module__, LexicalRetriever.__module__)
        return self._by_words

    @cached_property
    def _by_words(self) -> Retriever:
        return SharedRetriever(LexicalRetriever(self))

    def reranker(self, model: str = "") -> Reranker:
        """Return the reranker ``model``, by default that of the options. The same name gives the same object."""
        chosen = model or self.settings.rerank_model
        own = replace(self.settings, rerank_model=chosen)
        if chosen not in self._rerankers:
            # The parts that it gets are noted with it, each time it is handed out.
            with noting() as made:
                create = resolve("rerankers", reranker_name(own))
                inner: Reranker = create(_Reranking(self, own))
                note("reranker", create.__module__, type(inner).__module__, SharedReranker.__module__)
            self._rerankers[chosen] = SharedReranker(inner, self.building), made
        reranker, made = self._rerankers[chosen]
        if is_noting():
            made.again()
            note("", reranked_by=[reranker.model, reranker.revision], **affecting(own, "reranking"))
        return reranker

    def _note_chunks(self) -> None:
        """Note everything that decides the chunks."""
        note(
            "chunker", __name__, RecordedCuts.__module__, module_of("chunkers", self.spec.chunker), cut_by=self._source
        )
        note("", **affecting(self.settings, "retrieval"), **self._least())
        if self.spec.windows:
            note("windows", windows_of.__module__)
        if self.settings.near_duplicates > 0:
            note("duplicates", duplicates.__module__)

    def _least(self) -> dict[str, Any]:
        return {"least": self.spec.least} if self.spec.least else {}

    def _searched(self) -> dict[str, Any]:
        graph = graph_options(self.settings)
        return {"searched_by": asdict(graph)} if graph else {}

    def identity(self) -> dict[str, Any]:
        """Return what decides cuts and vectors besides documents and options, as plain JSON, for services."""
        windows = {"windows_by": windows_source()} if self.spec.windows else {}
        alike = {"alike_by": duplicates_source()} if self.settings.near_duplicates > 0 else {}
        embedded = [self.embedder.model, self.embedder.revision]
        return {
            "cut_by": self._source,
            "embedded_by": embedded,
            **self._least(),
            **windows,
            **alike,
            **self._searched(),
        }

    def prepare(self, queries: Sequence[str]) -> None:
        """Build the index and embed ``queries``, once for all workers, which then need no model."""
        _ = self.index
        with self.building():
            self._embed_ahead(list(dict.fromkeys(queries)))

    def _embed_ahead(self, queries: list[str]) -> None:
        try:
            self.embedder.embed_queries(queries)
        except RagHarnessError:
            # A query cannot be embedded (too long, not recorded). Its own trial will report that.
            for query in queries if not self.embedder.refuses else ():
                with suppress(ModelCallError):
                    self.embedder.embed_queries([query])

    @contextmanager
    def building(self) -> Iterator[None]:
        """Hold the building lock during the block, and write all results, even if a later batch fails."""
        with building_alone(self.settings):
            try:
                yield
            finally:
                self.stores.flush()

    def _vectors(self) -> Matrix:
        try:
            with reported_batches(self.embedder, replace(self.settings, embed_model=self.spec.embedder)):
                return self.embedder.embed_documents([chunk.text for chunk in self.indexed])
        except RecordingMissError as miss:
            unknown = set(miss.texts)
            lost = [chunk.chunk_id for chunk in self.indexed if chunk.text in unknown]
            named = ", ".join(lost[:5]) + (f" and {len(lost) - 5} more" if len(lost) > 5 else "")
            raise RecordingMissError(f"{named}: {miss}{_other_kinds(lost)}", miss.texts) from None


def _other_kinds(chunk_ids: Sequence[str]) -> str:
    if all(chunk_id.rpartition("#")[0].lower().endswith(".md") for chunk_id in chunk_ids):
        return ""
    return " Files of every kind that a loader reads are documents (txt, html, pdf): one that is none goes elsewhere."


class _Reranking:
    """A retrieval for a reranker. Its settings name that reranker, whatever the options name."""

    def __init__(self, retrieval: Retrieval, settings: Settings) -> None:
        self._retrieval, self.settings = retrieval, settings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._retrieval, name)
