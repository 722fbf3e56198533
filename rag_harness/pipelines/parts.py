"""Parts of experiments: data, models by role and retrieval by spec, each created on first use and shared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.core.errors import PrerequisiteError
from rag_harness.core.files import json_digest
from rag_harness.core.lazy import Lazy
from rag_harness.core.protocols import ChatModel, ChunkWriter
from rag_harness.core.registry import is_noting, may_be_kept, module_of, note, resolve, stated_fingerprint
from rag_harness.core.settings import Settings, access_of, affecting
from rag_harness.core.types import IndexSpec, Query
from rag_harness.data.datasets import Data, DataSets
from rag_harness.models.array_store import CachedEmbedder, StoreRoom
from rag_harness.models.endpoints import Endpoints
from rag_harness.models.model_names import chat_name, embedder_name, reranker_name
from rag_harness.models.prompts import Prompts, load_prompts
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.scrubbing import secrets_of
from rag_harness.models.throttling import Meter
from rag_harness.retrieval.builder import Retrieval, Rewritten, spec_of
from rag_harness.retrieval.retrievers import Rarity

if TYPE_CHECKING:
    from rag_harness.core.settings.endpoints import EndpointSpec


_T = TypeVar("_T")


class RunParts:
    """The parts of one run in one process. Each part notes its ingredients. The experiment that uses it reads them."""

    def __init__(
        self,
        settings: Settings,
        scrub: Callable[[str], str] | None = None,
        data: DataSets | None = None,
        meter: Meter | None = None,
    ) -> None:
        self.settings: Settings = settings
        self.scrub: Callable[[str], str] | None = scrub
        self._stores, self._cassettes = Lazy(lambda: StoreRoom(settings)), Lazy(self._open_cassettes)
        self._data = data or DataSets(settings)
        self._retrievals: dict[tuple[IndexSpec, str], Retrieval] = {}
        self._embedders: dict[str, CachedEmbedder] = {}
        self.endpoints: Endpoints = Endpoints(settings, lambda: self.cassettes, lambda: self.stores, meter)
        self._versions: dict[str, str] = {}
        self._under: dict[Settings, RunParts] = {}
        # Versions of services, or problems, where another process of the run has asked for them.
        self.told_versions: Mapping[str, Mapping[str, str]] = {}
        # The plugin sets this to the loop of the trials. A limiter, a budget and a connection belong to one event loop.
        self.loop: Callable[[Coroutine[Any, Any, Any]], Any] = asyncio.run

    @property
    def stores(self) -> StoreRoom:
        """The stores of vectors, scores and cuts."""
        return self._stores.get()

    @property
    def cassettes(self) -> Cassettes:
        """The recorded answers of the profile."""
        return self._cassettes.get()

    def _open_cassettes(self) -> Cassettes:
        settings = self.settings
        folder = settings.folder("cassettes") / settings.profile
        return Cassettes(folder, secrets_of(settings), self.scrub, settings.abridge)

    def under(self, settings: Settings) -> RunParts:
        """Return parts under other settings of the same run: with its data, stores, recordings, limits and budget."""
        if settings not in self._under:
            made = RunParts(settings, self.scrub, self._data, self.endpoints.meter)
            made._stores, made._cassettes = self._stores, self._cassettes
            made._versions = self._versions
            made.told_versions, made.loop = self.told_versions, self.loop
            self.endpoints.close_too(made.endpoints.aclose)
            self._under[settings] = made
        return self._under[settings]

    def flush(self) -> None:
        """Write all arrays that the opened stores still hold in memory."""
        if self._stores.made is not None:
            self._stores.made.flush()

    @property
    def recordings_used(self) -> Collection[Path]:
        """The recordings that were used."""
        return self._cassettes.made.used if self._cassettes.made is not None else ()

    def chat(
        self,
        role: str = "answer",
        *,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        model: str = "",
    ) -> ChatModel:
        """Return the chat model of ``role``. By default model and sampling are those of the settings."""
        chosen: dict[str, Any] = {"temperature": temperature, "max_output_tokens": max_output_tokens, "model": model}
        asked = self.endpoints.settings_of(role, **chosen)
        sampled = [asked.temperature, asked.max_output_tokens, asked.seed]
        fields = [asked.chat_request] if asked.chat_request else []
        decides = {f"{role}_by": [asked.chat_model, asked.chat_base_url, *sampled, *fields]}
        note(f"chat {role}", module_of("chat", chat_name(asked)), Endpoints.__module__, **decides)
        if role == "answer":
            note("", **affecting(asked, "generation"))
        return self.endpoints.chat(role, **chosen)

    def rewriter(self) -> ChatModel | None:
        """Return the model of role ``rewrite``, or None without one: the model that answers does not replace it."""
        return self.chat("rewrite", temperature=0.0) if self.settings.rewrite_model else None

    def version_of(self, service: EndpointSpec, ask: Callable[[], str]) -> str:
        """Return the version of a service, which is asked once a run.

        Raises:
            PrerequisiteError: the service states none.
        """
        told = self.told_versions.get(service.name, {})
        if "problem" in told:
            raise PrerequisiteError(told["problem"])
        if service.name not in self._versions:
            self._versions[service.name] = told["version"] if told else ask()
        return self._versions[service.name]

    def run(self, calls: Coroutine[Any, Any, _T]) -> _T:
        """Run ``calls`` of models before the first trial, and return their result."""
        result: _T = self.loop(calls)
        return result

    def prompts(self, experiment: str) -> Prompts:
        """Return the templates of an experiment."""
        found = load_prompts(experiment, self.settings.folder("prompts"))
        note("prompts", load_prompts.__module__, prompt_files=json_digest([found.system, found.user]))
        return found

    def data(self, name: str = "") -> Data:
        """Return the data called ``name``; an empty name is the run's own.

        Raises:
            SettingsError: pyproject.toml names no such data.
        """
        return self._data.get(name)

    def retrieval(self, spec: IndexSpec | None = None, data: str = "") -> Retrieval:
        """Return the retrieval from ``data`` under ``spec``, by default the spec of the options.

        The same spec and documents give the same object, so experiments share its index and its work.
        """
        spec = spec or spec_of(self.settings)
        documents = self.data(data)
        key = spec, documents.folder
        if key not in self._retrievals:
            embedder = self.embedder(spec.embedder)
            self._retrievals[key] = Retrieval(spec, lambda: documents.documents, self.settings, self.stores, embedder)
        if is_noting():
            note("", documents=documents.digest)
        return self._retrievals[key]

    def rewritten(self, retrieval: Retrieval, writer: ChunkWriter) -> Retrieval:
        """Return a retrieval that finds the chunks of ``retrieval`` by the texts that ``writer`` makes of them.

        A run has them made before the first trial; a service has those of a document made when it comes.
        """
        note("rewriter", Rewritten.__module__, type(writer).__module__, rewritten_by=writer.identity)
        return Rewritten(retrieval, writer)

    def rarity(self, retrieval: Retrieval) -> Callable[[], Rarity]:
        """Return a function that returns the word weights over the chunks of ``retrieval``. It computes them once."""
        return cache(lambda: Rarity(retrieval.chunks))

    def embedder(self, model: str = "") -> CachedEmbedder:
        """Return the embedder of ``model``, by default the model of the options, with its stores."""
        settings = replace(self.settings, embed_model=model or self.settings.embed_model)
        if settings.embed_model not in self._embedders:
            self._embedders[settings.embed_model] = self._new_embedder(settings)
        return self._embedders[settings.embed_model]

    def cut(self) -> tuple[Mapping[str, int], int]:
        """Return how many texts of a role were cut to the longest input of a model, and that length in tokens."""
        cutting = [embedder for embedder in self._embedders.values() if any(embedder.cut.values())]
        return (cutting[0].cut, cutting[0].max_tokens) if cutting else ({}, 0)

    def _new_embedder(self, settings: Settings) -> CachedEmbedder:
        inner: Any = resolve("embedders", embedder_name(settings))(_Adapting(self, settings))
        wants_tokens = reranker_name(settings) == "late-interaction" and hasattr(inner, "embed_with_tokens")
        of_it = {"model": inner.model, "revision": inner.revision + stated_fingerprint(inner)}
        may_keep = may_be_kept(inner, module_of("embedders", embedder_name(settings)))
        return CachedEmbedder(
            inner,
            self.stores.open("vectors", **of_it, may_keep=may_keep),
            self.stores.open("tokens", **of_it, may_keep=may_keep) if wants_tokens else None,
            refuse=_refusal(settings, inner),
            may_cut=bool(settings.dataset),
            may_keep=may_keep,
        )

    def prepared(self, retrieval: Retrieval) -> Callable[[Sequence[Query]], None]:
        """Return a function that prepares ``retrieval`` for queries."""
        return lambda queries: retrieval.prepare([query.text for query in queries])


def _refusal(settings: Settings, embedder: Any) -> str:
    """Return why an embedder may not be called. One without a model may always be called, and needs no recording."""
    if getattr(embedder, "needs_no_model", False):
        return ""
    return access_of(settings).refusal(local=embedder_name(settings) != "openai")


class _Adapting:
    """The run's parts for the adapter of another model than the options name."""

    def __init__(self, parts: RunParts, settings: Settings) -> None:
        self._parts, self.settings = parts, settings

    @property
    def stores(self) -> StoreRoom:
        return self._parts.stores

    @property
    def cassettes(self) -> Cassettes:
        return self._parts.cassettes
