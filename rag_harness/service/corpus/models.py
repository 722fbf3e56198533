"""The models of a server, shared by all collections. Each is loaded once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rag_harness.errors import RagHarnessError, SettingsError
from rag_harness.files.log import log
from rag_harness.models.embedders.cached import CachedEmbedder
from rag_harness.models.endpoints import Endpoints
from rag_harness.models.model_names import embedder_name, reranker_name
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.stores import StoreRoom
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Store, Stores
from rag_harness.registry import resolve
from rag_harness.service.corpus.stores import CollectionStores
from rag_harness.settings import Settings, access_of


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
