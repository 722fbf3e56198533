"""Build index, retrievers and rerankers of documents under one ``IndexSpec``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from rag_harness.core.errors import CriticalError, ModelCallError, RagHarnessError, RecordingMissError, UnreadableError
from rag_harness.core.escaping import terminal_line as shown
from rag_harness.core.log import log
from rag_harness.core.progress import report
from rag_harness.core.protocols import ChunkWriter, Index, LexicalIndex, PersistentIndex, Reranker, Retriever, Stores
from rag_harness.core.registry import (
    REVISIONS,
    NotedParts,
    is_noting,
    is_own,
    module_of,
    note,
    noting,
    resolve,
    stated_fingerprint,
)
from rag_harness.core.settings import Settings, access_of, affecting
from rag_harness.core.types import Chunk, Document, IndexSpec, Matrix, TokenVectors
from rag_harness.models.endpoints import embedder_name, reranker_name, token_batches
from rag_harness.retrieval.bm25 import Bm25Index
from rag_harness.retrieval.chunking import Chunker, ChunkingSettings
from rag_harness.retrieval.indexes.server_connection import graph_options
from rag_harness.retrieval.indexes.shard_files import ContentDigest, digested_bytes
from rag_harness.retrieval.ingest import RecordedCuts, WindowedRetriever, chunk_of_window, duplicates, windows_of
from rag_harness.retrieval.ingest import duplicates_revision as duplicates_source
from rag_harness.retrieval.ingest import windows_revision as windows_source
from rag_harness.retrieval.retrievers import DenseRetriever, LexicalRetriever, SharedReranker, SharedRetriever

if TYPE_CHECKING:
    from rag_harness.models.array_store import CachedEmbedder, Computed


# The building lock of a run. One process builds at a time; the others then find its vectors, cuts and indexes.


@contextmanager
def building_alone(settings: Settings) -> Iterator[None]:
    """Hold the run's building lock. Without a folder for results, nothing is locked."""
    from filelock import FileLock

    folder = settings.path(settings.cache_dir)
    if access_of(settings).keeps == "nothing" or not os.access(folder.parent, os.W_OK):
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "building.lock"):
        yield


# Embedding of many chunks by a local model, in steps that can be reported: a part of 256 takes a CPU a minute.

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
        """Whether cuts are stored. Cuts of a user's own chunker without a fingerprint are not."""
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
        return REVISIONS[f"chunkers/{self.spec.chunker}"]

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
        """Return the reranker ``model``, by default the one of the options. The same name gives the same object."""
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


class Rewritten(Retrieval):
    """The chunks of ``of``, with the texts that ``writer`` makes of them.

    Args:
        of: has the chunks, and embeds and indexes as this one does.
        writer: makes the texts, once.
    """

    def __init__(self, of: Retrieval, writer: ChunkWriter) -> None:
        super().__init__(of.spec, lambda: (), of.settings, of.stores, of.embedder)
        self._of, self._writer = of, writer
        self._failed: RagHarnessError | None = None

    def prepare(self, queries: Sequence[str]) -> None:
        """Get the texts written, and prepare for ``queries``. Other processes then find the recordings."""
        with building_alone(self.settings):
            _ = self.chunks
        super().prepare(queries)

    @cached_property
    def cut(self) -> list[Chunk]:
        """The rewritten chunks, in the order of the chunks. Near-duplicates are those of ``of``."""
        if self._failed is not None:  # the first trial has asked for all of them; another would pay for them again
            raise self._failed
        try:
            return self._writer.rewritten(self._of.chunks)
        except RagHarnessError as error:
            self._failed = error
            raise

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The same."""
        return self.cut


SAMPLE = 20
_LENGTH_TOLERANCE = 1e-3


def check_compatible(retrieval: Retrieval, query: str) -> None:
    """Check the vectors of chunks and of ``query``, and that sampled chunks find themselves first.

    Raises:
        CriticalError: dimensions differ, vectors are not finite or not of unit length, or a chunk's own text finds
            another chunk: the index holds vectors of another model, revision or text.
    """
    chunks = retrieval.indexed[:: max(1, len(retrieval.indexed) // SAMPLE)][:SAMPLE]
    vectors = retrieval.embedder.embed_documents([chunk.text for chunk in chunks])
    asked = retrieval.embedder.embed_queries([query])
    _check_vectors("query", asked, vectors.shape[1])
    _check_vectors("chunk", vectors, vectors.shape[1])
    lost = []
    for chunk, vector in zip(chunks, vectors, strict=True):
        found = retrieval.index.search(vector, 1)
        if not found or found[0].chunk.text != chunk.text:
            lost.append((chunk.chunk_id, found[0].chunk.chunk_id if found else "nothing"))
    embedder = retrieval.embedder
    if lost:
        wanted, found_first = lost[0]
        raise CriticalError(
            f"Index and embedder do not match: {len(lost)} of {len(chunks)} sampled chunks do not find themselves, "
            f"e.g. the text of {wanted} finds {found_first} first. The index holds vectors of another model, revision "
            f"or text than {embedder.model}@{embedder.revision}. Build it again: --rag-overwrite, or "
            f"delete {retrieval.settings.cache_dir}/."
        )


def _check_vectors(kind: str, vectors: np.ndarray, dimension: int) -> None:
    if vectors.shape[1] != dimension:
        raise CriticalError(f"The {kind} vectors have {vectors.shape[1]} dimensions, the chunks' {dimension}.")
    if not np.isfinite(vectors).all():
        raise CriticalError(f"A {kind} vector is not finite: its cosine means nothing.")
    off = np.abs(np.linalg.norm(vectors, axis=1) - 1).max()
    if off > _LENGTH_TOLERANCE:
        raise CriticalError(f"A {kind} vector is not of unit length (off by {off:.3g}): cosine and dot product differ.")
