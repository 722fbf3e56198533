"""The search of a collection: the retrieve step over one state, and the experiment that answers from it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from typing import Any, Protocol, cast

from rag_harness.core.errors import SettingsError
from rag_harness.core.log import log
from rag_harness.core.protocols import ChunkWriter, Experiment, Index, LexicalIndex
from rag_harness.core.registry import note
from rag_harness.core.settings import Settings
from rag_harness.core.types import Chunk, Hit, IndexSpec, Matrix, Vector
from rag_harness.data.datasets import Data
from rag_harness.models.array_store import CachedEmbedder
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.pipelines.experiments import builder, experiment, is_variant
from rag_harness.pipelines.parts import RunParts
from rag_harness.retrieval.bm25 import LiveWords
from rag_harness.retrieval.builder import Retrieval, spec_of
from rag_harness.retrieval.indexes import LivePoints, opening_of
from rag_harness.retrieval.ingest import duplicates
from rag_harness.retrieval.retrievers import Rarity
from rag_harness.service.corpus.contents import CollectionStores, Contents, LiveTerms, Serving, Way
from rag_harness.service.corpus.preparation import ServerModels


class Searched(Protocol):
    """An index that is searched while it changes."""

    points: LivePoints
    words: Mapping[int, LiveWords]
    stores: CollectionStores


class LiveRetrieval(Retrieval):
    """Retrieves from one state of a collection.

    Args:
        number: the number of this way of searching: which cuts of each document it has.
        contents: the state.
        lasting: index and words of the collection, which all its states share.
        of: has the chunks that are rewritten here; None if chunks are found by their own texts.
    """

    def __init__(
        self,
        spec: IndexSpec,
        number: int,
        contents: Contents,
        lasting: Searched,
        settings: Settings,
        embedder: CachedEmbedder,
        of: LiveRetrieval | None = None,
    ) -> None:
        super().__init__(spec, lambda: contents.documents, settings, lasting.stores, embedder)
        self.number: int = number
        self._contents, self._points, self._words, self._of = contents, lasting.points, lasting.words[number], of

    @cached_property
    def cut(self) -> list[Chunk]:
        """All chunks, as they were cut when their documents came."""
        return [chunk for held in self._contents.held for chunk in held.cuts[self.number].chunks]

    @cached_property
    def left_out(self) -> list[Chunk]:
        """The chunks that are near-duplicates of an earlier document's, if the settings leave such chunks out."""
        if self._of is not None:
            gone = {chunk.chunk_id for chunk in self._of.left_out}
            return [chunk for chunk in self.cut if chunk.chunk_id in gone]
        least = self.settings.near_duplicates
        return [each.chunk for each in duplicates(self.cut, least, self.stores)] if least else []

    @cached_property
    def chunks(self) -> list[Chunk]:
        """The chunks that can be found."""
        gone = {chunk.chunk_id for chunk in self.left_out}
        return [chunk for chunk in self.cut if chunk.chunk_id not in gone] if gone else self.cut

    @cached_property
    def indexed(self) -> list[Chunk]:
        """What the index can find, in the order of ``places``."""
        return [chunk for _, chunk in self._found_as]

    @cached_property
    def index(self) -> Index:
        """The part of the index that belongs to this state."""
        return LiveIndex(self._points, [point for point, _ in self._found_as], self.indexed)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """BM25 over the chunks of this state."""
        return self._words.view(self.chunks)

    @cached_property
    def _found_as(self) -> list[tuple[int, Chunk]]:
        gone = {chunk.chunk_id for chunk in self.left_out}
        pairs = [pair for held in self._contents.held for pair in held.found_as(self.number)]
        return [(point, chunk) for point, chunk in pairs if not gone or _owner(chunk, gone) is None]

    @property
    def is_dense(self) -> bool:
        """Whether the experiment retrieves by the vector of a question."""
        return "_dense" in self.__dict__

    def warm(self) -> None:
        """Make everything that needs all chunks, so that no question waits for it."""
        _ = self.index, self.content_digest, self.dense, self.words
        if self.spec.windows:
            _ = self.chunk_of_window
        self.lexical.search("", 1)
        log.debug("%d chunks can be found", len(self.chunks))

    @contextmanager
    def building(self) -> Iterator[None]:
        """Do nothing: nothing is built for other processes, and nothing that a question needed is written."""
        yield


def _owner(chunk: Chunk, among: set[str]) -> str | None:
    """Return the chunk ``among`` these that is this one, or that this one is a window of."""
    name = chunk.chunk_id
    return next((each for each in (name, name.rpartition("~")[0]) if each in among), None)


class LiveIndex:
    """Finds the points of one state. Points that were added or removed since are ignored.

    Args:
        points: the index.
        ids: the number of each chunk in it.
        chunks: the chunks that can be found, in the order of ``ids``.
    """

    def __init__(self, points: LivePoints, ids: Sequence[int], chunks: Sequence[Chunk]) -> None:
        self._points, self._chunks = points, chunks
        self._place = {point: place for place, point in enumerate(ids)}

    def upsert(self, chunks: Sequence[Chunk], vectors: Matrix) -> None:
        """Refuse: chunks come into a collection only with a document that is ingested."""
        raise NotImplementedError("documents of a collection are ingested")

    def search(self, vector: Vector, k: int) -> list[Hit]:
        """Return the ``k`` nearest chunks by cosine. Equal scores come in the order of the chunks."""
        if not self._chunks:
            return []
        wanted = k + 1
        while True:
            found = self._points.nearest(vector, wanted)
            known = [(score, self._place[point]) for score, point in found if point in self._place]
            if len(found) < wanted or self._enough(known, found[-1][0], k):
                break
            wanted *= 4
        best = sorted(known, key=lambda each: (-each[0], each[1]))[:k]
        return [Hit(self._chunks[place], score, rank) for rank, (score, place) in enumerate(best, 1)]

    def _enough(self, known: Sequence[tuple[float, int]], last: float, k: int) -> bool:
        """Whether no further point can be among the best ``k``: the engine may cut between equal scores."""
        return len(known) == len(self._chunks) or (len(known) >= k and known[k - 1][0] > last)

    def __len__(self) -> int:
        return len(self._chunks)


class Lasting:
    """What all states of a collection share.

    Args:
        models: of the server.
        stores: of the collection.
        points: its index.
    """

    def __init__(self, models: ServerModels, stores: CollectionStores, points: LivePoints) -> None:
        self.models: ServerModels = models
        self.stores: CollectionStores = stores
        self.points: LivePoints = points
        self.embedders: dict[str, CachedEmbedder] = {}
        # By way of searching, for each has chunks of its own.
        self.words: Mapping[int, LiveWords] = defaultdict(LiveWords)
        self.terms: Mapping[int, LiveTerms] = defaultdict(LiveTerms)


class CollectionParts(RunParts):
    """The parts of an experiment over one state of a collection.

    Args:
        lasting: what all states of the collection share.
        contents: the collection's state.
        ways: in which the experiment searches; None if it is built to find that out.
    """

    def __init__(self, lasting: Lasting, contents: Contents, ways: Sequence[Way] | None = None) -> None:
        super().__init__(lasting.models.settings)
        self.endpoints = lasting.models.endpoints
        self.loop = lasting.models.parts.loop
        self._lasting, self._contents = lasting, contents
        self._embedders = lasting.embedders
        self.ways: list[Way] = list(ways or ())
        self._is_known = ways is not None
        self._live: dict[int, LiveRetrieval] = {}
        self._wanted: list[Callable[[], Any]] = []

    @property
    def stores(self) -> Any:
        return self._lasting.stores

    @property
    def cassettes(self) -> Cassettes:
        return self._lasting.models.cassettes

    @property
    def retrievals(self) -> Mapping[int, LiveRetrieval]:
        """The retrievals that were asked for so far, by the number of their way."""
        return self._live

    def data(self, name: str = "") -> Data:  # noqa: ARG002 - a collection is all the data that there is
        return cast("Data", self._contents)

    def retrieval(self, spec: IndexSpec | None = None, data: str = "") -> Retrieval:  # noqa: ARG002
        """Return the retrieval from the collection under ``spec``.

        Raises:
            SettingsError: a service cannot index the documents so.
        """
        note("", documents=self._contents.digest)
        return self._searching(Way(spec or spec_of(self.settings)))

    def rewritten(self, retrieval: Retrieval, writer: ChunkWriter) -> Retrieval:
        """Return a retrieval that finds the chunks of ``retrieval`` by the texts that ``writer`` made of them.

        Raises:
            SettingsError: a service cannot index the documents so.
        """
        return self._searching(Way(retrieval.spec, writer, cast("LiveRetrieval", retrieval).number))

    def rarity(self, retrieval: Retrieval) -> Callable[[], Rarity]:
        """Return a function that gives the weights of words. Each chunk is counted once."""
        terms = self._lasting.terms[cast("LiveRetrieval", retrieval).number]
        weights = cache(lambda: terms.over(retrieval.chunks))
        self._wanted.append(weights)
        return weights

    def warm(self) -> None:
        """Make everything that needs all chunks, so that no question waits for it."""
        for retrieval in self._live.values():
            retrieval.warm()
        for make in self._wanted:
            make()

    def _searching(self, way: Way) -> LiveRetrieval:
        keys = [each.key for each in self.ways]
        if way.key not in keys:
            self._check_new(way)
            self.ways.append(way)
            keys.append(way.key)
        number = keys.index(way.key)
        if number not in self._live:
            self._live[number] = self._made(way, number)
        return self._live[number]

    def _check_new(self, way: Way) -> None:
        if self._is_known:
            raise SettingsError(
                f"The experiment asks for documents cut as {way.spec.chunker}, for which it did not ask when the "
                f"server started. Ask parts for every retrieval while the experiment is built, and for the same ones "
                f"each time."
            )
        embedder = self.ways[0].spec.embedder if self.ways else way.spec.embedder
        if way.spec.embedder != embedder:
            raise SettingsError(
                f"The experiment embeds its documents with two models, {embedder} and {way.spec.embedder}: a service "
                f"has one. Serve an experiment with one."
            )

    def _made(self, way: Way, number: int) -> LiveRetrieval:
        of = self._live[way.of] if way.writer is not None else None
        embedder = self.embedder(way.spec.embedder)
        return LiveRetrieval(way.spec, number, self._contents, self._lasting, self.settings, embedder, of)

    def _new_embedder(self, settings: Settings) -> CachedEmbedder:
        return self._lasting.models.stored(settings.embed_model, self._lasting.stores)


@dataclass(frozen=True)
class ServedExperiment:
    """The served experiment and how it indexes documents.

    Attributes:
        name: the experiment's name.
        strict: the name of its strict variant; empty if it has none.
        ways: the ways in which it searches documents: how they become an index.
        made_of: everything that decides cuts and vectors, as JSON.
    """

    name: str
    strict: str
    ways: tuple[Way, ...]
    made_of: str


def served_experiment(name: str, models: ServerModels) -> ServedExperiment:
    """Find out how experiment ``name`` indexes documents, by building it over no documents.

    Raises:
        RegistryError: the experiment is unknown.
        SettingsError: a service cannot index documents in that way.
    """
    module = import_module(builder(name, models.settings).__module__)
    strict = "" if is_variant(name) else str(getattr(module, "STRICT", ""))
    parts = CollectionParts(Lasting(models, CollectionStores(None, {}), _Nothing()), Contents())
    for each in filter(None, (name, strict)):
        experiment(each, parts)
    if not parts.retrievals:
        raise SettingsError(
            f"Experiment {name!r} asks parts.retrieval for nothing, so documents of a service would not reach it. "
            f"Serve one that retrieves from parts.retrieval."
        )
    _check_index(parts)
    first, *further = [_made_of(way, parts.retrievals[number]) for number, way in enumerate(parts.ways)]
    made_of = {**first, "further": further} if further else first
    return ServedExperiment(name, strict, tuple(parts.ways), json.dumps(made_of, sort_keys=True))


def _check_index(parts: CollectionParts) -> None:
    """Refuse what a service would search otherwise than it was evaluated."""
    indexes = list(dict.fromkeys(way.spec.index for way in parts.ways))
    if len(indexes) > 1:
        raise SettingsError(
            f"The experiment searches two indexes, {indexes[0]} and {indexes[1]}: a service has one. Serve an "
            f"experiment with one."
        )
    opening_of(indexes[0])
    if any("searched_by" in each.identity() for each in parts.retrievals.values()):
        raise SettingsError(
            "qdrant_graph searches by a graph, and a service compares every vector: what was evaluated would "
            "not be what is served. Leave qdrant_graph out, evaluate again, and serve that."
        )


def _made_of(way: Way, retrieval: LiveRetrieval) -> dict[str, Any]:
    identity = {key: value for key, value in retrieval.identity().items() if key != "alike_by"}
    return {**way.identity, **identity}


def serving_of(
    wanted: ServedExperiment, lasting: Lasting, contents: Contents, generation: int
) -> tuple[Serving, LiveRetrieval]:
    """Return the serving for ``contents``, ready for the first question, and what it retrieves from."""
    parts = CollectionParts(lasting, contents, wanted.ways)
    normal = experiment(wanted.name, parts)
    strict: Experiment | None = experiment(wanted.strict, parts) if wanted.strict else None
    retrieval = parts.retrievals[0]
    # Without dense retrieval, an experiment takes questions of any length.
    is_dense = any(each.is_dense for each in parts.retrievals.values())
    check = {"check": retrieval.embedder.check_query} if is_dense else {}
    parts.warm()
    settings = lasting.models.settings
    longest, refusals = settings.max_answer, settings.refusals
    return (
        Serving(normal, strict, contents.document, generation, longest_answer=longest, refusals=refusals, **check),
        retrieval,
    )


class _Nothing:
    """An index without points."""

    def add(self, ids: object, vectors: Matrix) -> None:
        """Add nothing."""

    def remove(self, ids: object) -> None:
        """Remove nothing."""

    def nearest(self, vector: Vector, limit: int) -> list[tuple[float, int]]:  # noqa: ARG002
        return []

    def ids(self) -> set[int]:
        return set()

    def vectors(self, ids: object) -> dict[int, Vector]:  # noqa: ARG002
        return {}

    def tidy(self) -> None:
        """Tidy nothing."""

    def close(self) -> None:
        """Close nothing."""
