"""The preparation of a document, cut and embedded by the models of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, groupby
from typing import Any

import numpy as np

from rag_harness.core.errors import RagHarnessError, SettingsError, UnreadableError
from rag_harness.core.log import log
from rag_harness.core.progress import report
from rag_harness.core.protocols import Store, Stores
from rag_harness.core.registry import resolve
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.types import Chunk, Document, Matrix
from rag_harness.models.array_store import CachedEmbedder, Computed, EmbedElsewhere, StoreRoom, key_of
from rag_harness.models.endpoints import Endpoints, embedder_name, reranker_name
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.builder import Retrieval, Rewritten
from rag_harness.service.corpus.contents import CollectionStores, CutDocument, KeptTexts, TokenStore, Way

# The models of a server, shared by all collections. Each is loaded once.


class ServerModels:
    """The models of a server. Each is loaded once, and every collection asks it from one thread.

    Args:
        settings: of the server.
    """

    def __init__(self, settings: Settings) -> None:
        if settings.mode == "record":
            raise SettingsError(
                "Mode record would write what people ask into recordings that are committed. Serve in mode live, "
                "which asks models behind a network, or auto, which asks those in this process."
            )
        self.settings = settings
        self.parts: RunParts = RunParts(settings)
        self._embedders: dict[tuple[Settings, bool], Any] = {}

    @property
    def endpoints(self) -> Endpoints:
        """The chat models by role, with one budget, and one limiter for each base URL."""
        return self.parts.endpoints

    @property
    def cassettes(self) -> Cassettes:
        """The recorded answers of the profile."""
        return self.parts.cassettes

    def embedder(self, model: str, *, ingests: bool = False) -> Any:
        """Return the embedder of ``model``, without a store. The ingest thread has an embedder of its own.

        A tokenizer must not be used by two threads, and a question must not wait for a document.
        """
        settings = replace(self.settings, embed_model=model or self.settings.embed_model)
        if (settings, ingests) not in self._embedders:
            made = resolve("embedders", embedder_name(settings))(_Adapting(self, settings))
            self._embedders[settings, ingests] = made
        return self._embedders[settings, ingests]

    def stored(self, model: str, stores: Stores, tokens: Store | None = None) -> CachedEmbedder:
        """Return the embedder with stores; with ``tokens``, the ingest thread's, which keeps token vectors there."""
        inner = self.embedder(model, ingests=tokens is not None)
        return CachedEmbedder(
            inner,
            stores.open("vectors", inner.model, inner.revision),
            (tokens or stores.open("tokens", inner.model, inner.revision)) if self.wants_tokens(inner) else None,
            refuse=access_of(self.settings).refusal(local=embedder_name(self.settings) != "openai"),
            may_cut=bool(self.settings.dataset),
        )

    def load(self, model: str) -> None:
        """Load the embedder for questions before the first one: importing its libraries takes seconds."""
        stores = CollectionStores(None, {})
        embedder = self.stored(model, stores)
        if embedder.refuses or not access_of(self.settings).calls_local:
            return
        try:
            embedder.embed_queries(["ready"])
        except RagHarnessError as error:
            log.warning("Questions that nobody recorded cannot be embedded: %s", error)

    def wants_tokens(self, inner: Any) -> bool:
        """Whether the reranker compares token vectors, and the embedder can make them."""
        return reranker_name(self.settings) == "late-interaction" and hasattr(inner, "embed_with_tokens")

    def recorded(self, *, cached: bool) -> StoreRoom | None:
        """Return shipped vectors and cuts if the mode reads them; with ``cached``, also those made on this machine."""
        access = access_of(self.settings)
        if not (access.reads_recordings or cached):
            return None
        settings = self.settings if cached else replace(self.settings, cache_dir=self._recordings)
        return StoreRoom(replace(settings, mode="replay" if access.reads_recordings else "live"))

    @property
    def _recordings(self) -> str:
        return f"{self.settings.folder_said('cassettes')}/{self.settings.profile}"


class _Adapting:
    """The server's parts, in the form that a model's adapter reads."""

    def __init__(self, models: ServerModels, settings: Settings) -> None:
        self._models, self.settings = models, settings

    @property
    def stores(self) -> Any:
        return CollectionStores(None, {})

    @property
    def cassettes(self) -> Cassettes:
        return self._models.cassettes


CHUNK_CHARACTERS = 1 << 20
"""The most characters of a chunk. Chunks are cut by tokens, and a word of 32 MB is one token to a tokenizer. While a
pattern searches such a chunk, no question is answered."""
_TOGETHER = 32
"""How many chunks are embedded between two checks and two reports of progress: some seconds on a slow machine."""
_PART = 1 << 16
"""How many characters are looked at at once."""


@dataclass(frozen=True)
class Prepared:
    """What the index gets of a document, as each way of searching has it.

    ``vectors``, shape (n, d), has a row for each text that the index gets, one way after the other. ``refused`` says
    why the index gets nothing: the document exceeds a limit.
    """

    document: Document
    cuts: tuple[CutDocument, ...]
    vectors: Matrix
    refused: str = ""

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """The chunks of the first way."""
        return self.cuts[0].chunks

    @property
    def coverage(self) -> float | None:
        """The share of the text's characters, blanks aside, that lie in chunks; None if the text has none."""
        return coverage(self.document.text, self.chunks)


class Preparer:
    """Cuts and embeds documents as a run would, in the ingest thread.

    Args:
        models: of the server.
        ways: the ways in which the experiment searches.
        recorded: cuts and vectors that need no model.
        tokens: the store of token vectors.
        texts: keeps other texts of chunks, for ways with a writer.
        check: called before each few chunks are embedded; raises to end the work.
    """

    def __init__(
        self,
        models: ServerModels,
        ways: Sequence[Way],
        recorded: Stores | None,
        tokens: TokenStore,
        texts: KeptTexts,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self._models, self._ways, self._recorded, self._tokens = models, ways, recorded, tokens
        self.texts: KeptTexts = texts
        self._check = check
        self._model: str = ways[0].spec.embedder  # all ways have the same one
        # Near-duplicates are compared later, when all documents are there. One document above a limit must not stop
        # others.
        self._settings = replace(models.settings, near_duplicates=0.0, unreadable="skip")
        self.skips: bool = models.settings.unreadable == "skip"

    def prepared(self, documents: Sequence[Document]) -> list[Prepared]:
        """Return the prepared documents, in their order. They are embedded together.

        Raises:
            ChunkTooLongError, RecordingMissError, ModelCallError: a chunk cannot be embedded.
            TextsNotMadeError: other texts of chunks cannot be made.
        """
        stores = CollectionStores(self._recorded, {}, bounded=False)
        embedder = self._models.stored(self._model, stores, self._tokens)
        embedder.elsewhere = self._between_checks(embedder)
        found: list[Retrieval] = []
        for way in self._ways:
            found.append(self._searched(way, documents, stores, embedder, found))
            _refuse_long(found[-1].cut)
        vectors = embedder.embed_documents([chunk.text for each in found for chunk in each.indexed])
        made = _parted(documents, found, vectors)
        return [replace(each, refused=found[0].refused.get(each.document.doc_id, "")) for each in made]

    def _searched(
        self,
        way: Way,
        documents: Sequence[Document],
        stores: CollectionStores,
        embedder: CachedEmbedder,
        before: Sequence[Retrieval],
    ) -> Retrieval:
        if way.writer is None:
            return Retrieval(way.spec, lambda: documents, self._settings, stores, embedder)
        return Rewritten(before[way.of], self.texts.keeping(way.writer))

    def _between_checks(self, embedder: CachedEmbedder) -> EmbedElsewhere:
        def embed(parts: Sequence[Sequence[str]], role: str, with_tokens: bool) -> Iterator[Computed]:
            done, total = 0, sum(map(len, parts))
            for part in parts:
                made = []
                for start in range(0, len(part), _TOGETHER):
                    self._check()
                    made.append(embedder.compute(part[start : start + _TOGETHER], role, with_tokens))
                    done += len(part[start : start + _TOGETHER])
                    report("embedding", done, total, "chunks")
                yield _joined(made)

        return embed

    def without_tokens(self, texts: Sequence[str]) -> list[str]:
        """Return the texts without token vectors: a question would have to compute them."""
        inner = self._models.embedder(self._model, ingests=True)
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
        self._models.stored(self._model, stores, self._tokens).token_vectors(texts, "document")


def _joined(made: Sequence[Computed]) -> Computed:
    vectors, tokens = zip(*made, strict=True)
    return np.concatenate(vectors), None if None in tokens else list(chain.from_iterable(tokens))


def _refuse_long(chunks: Sequence[Chunk]) -> None:
    longest = max((len(chunk.text) for chunk in chunks), default=0)
    if longest > CHUNK_CHARACTERS:
        raise UnreadableError(
            f"it has a chunk of {longest:,} characters, and one may have {CHUNK_CHARACTERS:,}: text "
            f"without blanks, or blanks without text. Part or remove them"
        )


def _by_document(chunks: Sequence[Chunk]) -> dict[str, tuple[Chunk, ...]]:
    return {name: tuple(some) for name, some in groupby(chunks, key=lambda chunk: chunk.doc_id)}


def _parted(documents: Sequence[Document], ways: Sequence[Retrieval], vectors: Matrix) -> Iterator[Prepared]:
    chunks = [_by_document(way.cut) for way in ways]
    indexed = [_by_document(way.indexed) for way in ways]
    # The vectors of a way begin behind those of the ways before it.
    reached = [0, *accumulate(len(way.indexed) for way in ways[:-1])]
    for document in documents:
        name, own = document.doc_id, []
        for number, texts in enumerate(indexed):
            start = reached[number]
            reached[number] += len(texts.get(name, ()))
            own.append(vectors[start : reached[number]])
        cuts = [CutDocument(*pair) for pair in zip(_of(name, chunks), _of(name, indexed), strict=True)]
        yield Prepared(document, tuple(cuts), np.concatenate(own))


def _of(name: str, ways: Sequence[dict[str, tuple[Chunk, ...]]]) -> list[tuple[Chunk, ...]]:
    return [way.get(name, ()) for way in ways]


def coverage(text: str, chunks: Sequence[Chunk]) -> float | None:
    """Return the share of the characters of ``text``, blanks aside, that lie in chunks; None if there are none."""
    solid = _solid(text, 0, len(text))
    if not solid:
        return None
    covered, reached = 0, 0
    for start, end in sorted((chunk.start, chunk.end) for chunk in chunks):
        covered += _solid(text, max(start, reached), end)
        reached = max(reached, end)
    return covered / solid


def _solid(text: str, start: int, end: int) -> int:
    """Count characters that are not blank, a part at a time: all words of 32 MB at once would take half a gigabyte."""
    parts = (text[at : min(at + _PART, end)] for at in range(start, end, _PART))
    return sum(len(word) for part in parts for word in part.split())
