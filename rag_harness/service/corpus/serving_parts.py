"""The parts of a service's experiments: shared models, and the state of one collection."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, cast

from rag_harness.dataset.data import Data
from rag_harness.errors import SettingsError
from rag_harness.models.embedders.cached import CachedEmbedder
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import ChunkWriter
from rag_harness.registry.noted_parts import note
from rag_harness.retrieval.indexes.live import LivePoints
from rag_harness.retrieval.live_words import LiveWords
from rag_harness.retrieval.rarity import Rarity
from rag_harness.retrieval.retrieval import Retrieval, spec_of
from rag_harness.service.corpus.contents import Contents
from rag_harness.service.corpus.live_terms import LiveTerms
from rag_harness.service.corpus.models import ServerModels
from rag_harness.service.corpus.searching import LiveRetrieval
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.service.corpus.ways import Way
from rag_harness.settings import Settings
from rag_harness.types import IndexSpec


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
