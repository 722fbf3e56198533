"""The parts of a service's experiments: shared models, and the state of one collection."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, cast

from rag_harness.dataset.data import Data
from rag_harness.errors import SettingsError
from rag_harness.models.embedders.cached import CachedEmbedder
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.pipelines.parts import RunParts
from rag_harness.registry.identity import note
from rag_harness.retrieval.indexes.live import LivePoints
from rag_harness.retrieval.live_words import LiveWords
from rag_harness.retrieval.rarity import Rarity
from rag_harness.retrieval.retrieval import Retrieval, spec_of
from rag_harness.service.corpus.contents import Contents
from rag_harness.service.corpus.live_terms import LiveTerms
from rag_harness.service.corpus.models import ServerModels
from rag_harness.service.corpus.searching import LiveRetrieval
from rag_harness.service.corpus.stores import CollectionStores
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
        self.words: LiveWords = LiveWords()
        self.terms: LiveTerms = LiveTerms()


class CollectionParts(RunParts):
    """The parts of an experiment over one state of a collection.

    Args:
        lasting: what all states of the collection share.
        contents: the collection's state.
    """

    def __init__(self, lasting: Lasting, contents: Contents) -> None:
        super().__init__(lasting.models.settings)
        self.endpoints = lasting.models.endpoints
        self._lasting, self._contents = lasting, contents
        self._embedders = lasting.embedders
        self._live: dict[IndexSpec, LiveRetrieval] = {}
        self._wanted: list[Callable[[], Any]] = []

    @property
    def stores(self) -> Any:
        return self._lasting.stores

    @property
    def cassettes(self) -> Cassettes:
        return self._lasting.models.cassettes

    @property
    def retrievals(self) -> Mapping[IndexSpec, LiveRetrieval]:
        """The retrievals that were asked for so far."""
        return self._live

    def data(self, name: str = "") -> Data:  # noqa: ARG002 - a collection is all the data that there is
        return cast("Data", self._contents)

    def retrieval(self, spec: IndexSpec | None = None, data: str = "") -> Retrieval:  # noqa: ARG002
        """Return the retrieval from the collection.

        Raises:
            SettingsError: the experiment asks for a second way to index it.
        """
        spec = spec or spec_of(self.settings)
        if self._live and spec not in self._live:
            raise SettingsError(
                f"The experiment indexes its documents in two ways, as {next(iter(self._live)).chunker} and as "
                f"{spec.chunker}: a service keeps one index. Serve an experiment with one, t1 in place of t5 say."
            )
        if spec not in self._live:
            self._live[spec] = self._made(spec)
        note("", documents=self._contents.digest)
        return self._live[spec]

    def rarity(self, retrieval: Retrieval) -> Callable[[], Rarity]:
        """Return a function that gives the weights of words. Each chunk is counted once."""
        weights = cache(lambda: self._lasting.terms.over(retrieval.chunks))
        self._wanted.append(weights)
        return weights

    def warm(self) -> None:
        """Make everything that needs all chunks, so that no question waits for it."""
        for retrieval in self._live.values():
            retrieval.warm()
        for make in self._wanted:
            make()

    def _made(self, spec: IndexSpec) -> LiveRetrieval:
        return LiveRetrieval(spec, self._contents, self._lasting, self.settings, self.embedder(spec.embedder))

    def _new_embedder(self, settings: Settings) -> CachedEmbedder:
        return self._lasting.models.stored(settings.embed_model, self._lasting.stores)
