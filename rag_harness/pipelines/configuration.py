"""Build the experiment of a configuration, and describe it in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rag_harness.core.errors import SettingsError, unknown
from rag_harness.core.protocols import Experiment, Reranker, Retriever
from rag_harness.core.registry import note
from rag_harness.core.settings import Settings
from rag_harness.core.settings.configurations import OF_SERVICE, ConfigurationSpec
from rag_harness.core.types import PipelineOutput, Query
from rag_harness.pipelines.experiments import data_of, endpoints_of, experiment
from rag_harness.pipelines.parts import Generator, RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.retrieval.builder import Retrieval, spec_of
from rag_harness.retrieval.retrievers import HybridRetriever, RerankedRetriever

DEFAULT_SHAPE: Mapping[str, Any] = {"retriever": "dense", "dense_weight": 0.5, "rerank": True, "prompt": "e3"}
"""Values of the parameters that are not options, where a configuration does not name them."""


_OPTIONS = ("chunk_overlap", "chunk_size", "candidates", "top_k")


@dataclass(frozen=True)
class ConfiguredRag:
    """Retrieves, reranks if there is a reranker, and answers from the best ``top_k`` chunks."""

    first: Retriever
    reranker: Reranker | None
    generator: Generator
    candidates: int
    top_k: int

    async def answer(self, query: Query) -> PipelineOutput:
        trace = Trace()
        if self.reranker is None:
            await trace.retrieve(self.first, query.text, self.top_k)
            trace.context = trace.retrieved
        else:
            await trace.retrieve(self.first, query.text, self.candidates)
            await trace.rerank(self.reranker, query.text, self.top_k)
        return await self.generator.answer(query, trace)


def build(spec: ConfigurationSpec, parts: RunParts) -> Experiment:
    """Return the experiment of a configuration.

    Raises:
        SettingsError: values contradict each other, or a parameter of a service is not part of its request.
        RegistryError: the experiment, the chunker or the index is not registered.
    """
    return _of_experiment(spec, parts) if spec.experiment else _of_own_shape(spec, parts)


def unfit(values: Mapping[str, Any], settings: Settings) -> str:
    """Return why values do not go together; empty where they do. Those that are not named are as the options say."""
    chosen = {**DEFAULT_SHAPE, **{name: getattr(settings, name) for name in _OPTIONS}, **values}
    if chosen["chunk_overlap"] >= chosen["chunk_size"]:
        return f"chunk_overlap {chosen['chunk_overlap']} is not less than chunk_size {chosen['chunk_size']}"
    if chosen["rerank"] and chosen["candidates"] < chosen["top_k"]:
        return f"candidates {chosen['candidates']} is less than top_k {chosen['top_k']}"
    return ""


def _of_own_shape(spec: ConfigurationSpec, parts: RunParts) -> Experiment:
    values: dict[str, Any] = {**DEFAULT_SHAPE, **spec.by_name}
    if why := unfit(spec.by_name, parts.settings):
        raise SettingsError(f"{spec.where}: {why}.")
    options: dict[str, Any] = {name: value for name, value in spec.values if name not in DEFAULT_SHAPE}
    settings = replace(parts.settings, **options)
    data = data_of(spec.name, parts.settings)
    retrieval = parts.retrieval(spec_of(settings), data)
    generator = Generator(
        parts.chat(
            temperature=settings.temperature, max_output_tokens=settings.max_output_tokens, model=settings.chat_model
        ),
        parts.prompts(values["prompt"]),
    )
    first = _first(retrieval, values)
    reranker = retrieval.reranker(settings.rerank_model) if values["rerank"] else None
    note("configured", RerankedRetriever.__module__, configuration=dict(spec.values))
    return Experiment(
        spec.name,
        ConfiguredRag(first, reranker, generator, settings.candidates, settings.top_k),
        data=data,
        retriever=first if reranker is None else RerankedRetriever(first, reranker, settings.candidates),
        prepare=None if values["retriever"] == "bm25" and reranker is None else parts.prepared(retrieval),
        answer_from=generator.answer_from,
        chunks=lambda: retrieval.chunks,
    )


def _first(retrieval: Retrieval, values: Mapping[str, Any]) -> Retriever:
    if values["retriever"] == "dense":
        return retrieval.dense
    if values["retriever"] == "bm25":
        return retrieval.words
    weight = values["dense_weight"]
    return HybridRetriever([retrieval.dense, retrieval.words], weights=(weight, 1 - weight))


def _of_experiment(spec: ConfigurationSpec, parts: RunParts) -> Experiment:
    options: dict[str, Any] = {name: value for name, value in spec.values if not name.startswith(OF_SERVICE)}
    settings = replace(parts.settings, **options)
    if spec.experiment in endpoints_of(settings):
        settings = _with_body(spec, settings)
    elif len(options) < len(spec.values):
        raise SettingsError(f"{spec.where}: {spec.experiment} is not a service, so it has no parameters {OF_SERVICE}…")
    built = experiment(spec.experiment, parts.under(settings))
    made_of = {**built.ingredients, "configuration": dict(spec.values)}
    return replace(built, id=spec.name, ingredients=made_of)


def _with_body(spec: ConfigurationSpec, settings: Settings) -> Settings:
    """Return settings whose service is sent the values of the configuration."""
    services = {each.name: each for each in settings.endpoints}
    service = services[spec.experiment]
    body = json.loads(service.body or "null")
    for name, value in spec.values:
        if name.startswith(OF_SERVICE):
            _put(body, name.removeprefix(OF_SERVICE).split("."), value, f"{spec.where}: {name}")
    services[service.name] = replace(service, body=json.dumps(body))
    return replace(settings, endpoints=tuple(services.values()))


def _put(body: Any, path: list[str], value: Any, where: str) -> None:
    """Put a value where the body has one already: a service silently ignores keys that it does not know."""
    *outer, last = path
    for key in outer:
        body = body.get(key) if isinstance(body, dict) else None
    if not isinstance(body, dict) or last not in body:
        known = [key for key, each in body.items() if not isinstance(each, dict)] if isinstance(body, dict) else []
        raise SettingsError(f"{where} is not in the body of the service. {unknown('place', last, known)}")
    body[last] = value


# A configuration in words: ``hybrid, 256 tokens, rerank 20 -> 4``.

_Say = Callable[[Mapping[str, Any]], str]
_SAID: Mapping[str, _Say] = {
    "retriever": lambda values: str(values["retriever"]),
    "dense_weight": lambda values: f"vectors weigh {values['dense_weight']:g}",
    "chunker": lambda values: str(values["chunker"]),
    "chunk_size": lambda values: f"{values['chunk_size']} tokens",
    "chunk_overlap": lambda values: f"overlap {values['chunk_overlap']}",
}
_CUT = ("rerank", "candidates", "top_k")


def in_words(values: Mapping[str, Any], varied: Collection[str]) -> str:
    """Return the values of the parameters that are varied, in the order in which a pipeline uses them."""
    said = [say(values) for name, say in _SAID.items() if name in varied and name in values]
    if any(name in varied for name in _CUT):
        said.append(_cut(values))
    known = (*_SAID, *_CUT)
    return ", ".join([*said, *(f"{name} {values[name]}" for name in varied if name not in known and name in values)])


def _cut(values: Mapping[str, Any]) -> str:
    if values.get("rerank", False) and "candidates" in values:
        return f"rerank {values['candidates']} -> {values['top_k']}"
    return f"top {values['top_k']}"
