"""Parts of experiments: data, models by role, retrieval by spec, and the generation of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict

from rag_harness.core.concurrency import Lazy
from rag_harness.core.errors import EmptyAnswerError, ModelOutputError, PrerequisiteError
from rag_harness.core.files import json_digest
from rag_harness.core.protocols import ChatModel, ChunkWriter
from rag_harness.core.registry import is_noting, may_be_kept, module_of, note, resolve, stated_fingerprint
from rag_harness.core.settings import Settings, access_of, affecting
from rag_harness.core.text.refusals import declines
from rag_harness.core.text.terms import cited_sources
from rag_harness.core.types import Answer, Hit, IndexSpec, Message, PipelineOutput, Query
from rag_harness.data.datasets import Data, DataSets
from rag_harness.models.array_store import CachedEmbedder, StoreRoom
from rag_harness.models.endpoints import Endpoints, chat_name, embedder_name, reranker_name
from rag_harness.models.prompts import Prompts, json_of, load_prompts
from rag_harness.models.recording.cassettes import Cassettes
from rag_harness.models.recording.scrubbing import secrets_of
from rag_harness.models.throttling import Meter
from rag_harness.pipelines.trace import Trace
from rag_harness.records.row import whole_characters
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


class PlainAnswer(BaseModel):
    """Structured output of E1 to E3."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="ignore")
    answer: str


class ReasonedAnswer(PlainAnswer):
    """Structured output of E4. The steps come first, so that the answer can follow from them."""

    reasoning_steps: list[str]


@dataclass(frozen=True)
class Generator:
    """Asks the chat model and parses its answer.

    Args:
        chat: the model.
        prompts: the experiment's templates.
        reasoning: whether to ask for reasoning steps before the answer.
    """

    chat: ChatModel
    prompts: Prompts
    reasoning: bool = False

    async def answer(self, query: Query, trace: Trace, said_before: Sequence[Message] = ()) -> PipelineOutput:
        """Answer from ``trace.context``. Earlier messages of a conversation come before the prompt's question."""
        with trace.stage("prompt"):
            system, user = self.prompts.messages(query.text, trace.context)
            messages = [system, *said_before, user]
        completion = await trace.complete(self.chat, messages, response_format(self.reasoning))
        with trace.stage("parse"):
            answer = read_answer(completion.text, len(trace.context), self.reasoning, completion.finish_reason)
        return trace.output(answer)

    async def answer_from(self, query: Query, hits: Sequence[Hit]) -> PipelineOutput:
        """Answer from ``hits`` alone, in their order."""
        return await self.answer(query, Trace(retrieved=list(hits), context=list(hits)))


def response_format(reasoning: bool) -> Mapping[str, Any]:
    """Return the ``response_format`` of OpenAI's structured outputs."""
    keys = {"reasoning_steps": {"type": "array", "items": {"type": "string"}}} if reasoning else {}
    properties = {**keys, "answer": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}


def read_answer(raw: str, sources: int, reasoning: bool, finish_reason: str = "") -> Answer:
    """Parse a model's JSON into an answer.

    Args:
        raw: the model's reply.
        sources: number of sources; citations beyond it are listed as invalid.
        reasoning: whether reasoning steps were requested.
        finish_reason: why the model stopped, in the server's word. It explains a reply that cannot be read.

    Raises:
        ModelOutputError: the text is not JSON of the requested form, or the answer is empty.
    """
    raw = whole_characters(raw)
    shape = ReasonedAnswer if reasoning else PlainAnswer
    try:
        read = shape.model_validate(json_of(raw))
    except ValueError as error:
        raise ModelOutputError(_unread(raw, finish_reason), raw) from error
    text = whole_characters(read.answer)
    if not text.strip():
        raise EmptyAnswerError("The model's answer is empty.", raw)
    steps = tuple(map(whole_characters, read.reasoning_steps)) if isinstance(read, ReasonedAnswer) else None
    if steps is not None and not any(step.strip() for step in steps):
        raise ModelOutputError("The model gave no reasoning steps.", raw)
    cited = cited_sources(text)
    return Answer(
        text=text,
        reasoning_steps=steps,
        citations=tuple(n for n in cited if 1 <= n <= sources),
        invalid_citations=tuple(n for n in cited if not 1 <= n <= sources),
        # Where the known phrases do not, those of the suite may decline: the row asks them.
        abstained=declines(text) or None,
        raw=raw,
    )


def _unread(raw: str, finish_reason: str) -> str:
    """Say why an answer cannot be read. All that a limit has cut off are told alike: then one line tells of them."""
    if finish_reason == "length":
        return (
            "The model reached its limit in the middle of its answer (finish_reason 'length'); allow more with "
            "max_tokens of role answer, or have it say less."
        )
    return f"The model's answer is not the JSON that was asked for: {raw[:120]!r}"
