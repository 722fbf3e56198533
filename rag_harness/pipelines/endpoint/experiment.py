"""Builder of a service's experiment from its spec."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.errors import PrerequisiteError
from rag_harness.models.recording.cassettes import SERVICES
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.scrubbing import Cleaner, secrets_of
from rag_harness.pipelines import data_of
from rag_harness.pipelines.context_limit import most_contexts
from rag_harness.pipelines.endpoint.client import Client
from rag_harness.pipelines.endpoint.pipeline import Cost, EndpointPipeline
from rag_harness.pipelines.endpoint.placing import placing_in
from rag_harness.pipelines.endpoint.requests import Requests
from rag_harness.pipelines.endpoint.retriever import EndpointRetriever
from rag_harness.pipelines.endpoint.service_answer import AnswerReader
from rag_harness.pipelines.endpoint.service_cassettes import OwnCassettes
from rag_harness.pipelines.endpoint.version import asked_version, recorded_version
from rag_harness.pipelines.parts import RunParts
from rag_harness.protocols import Experiment
from rag_harness.settings import Settings, access_of
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.settings.prices import prices_of
from rag_harness.types import Usage

if TYPE_CHECKING:
    from rag_harness.pipelines.endpoint.exchange import Exchange
    from rag_harness.pipelines.endpoint.listening import Listening

_NOT_ITS_ANSWERS = {
    *("name", "where", "data", "timeout", "concurrency", "rpm", "usd_per_call", "version", "expect"),
    *("traces_port", "traces_wait", "traces_late"),
}
"""Fields of a spec that change no answer."""


def builder_of(spec: EndpointSpec) -> Callable[[RunParts], Experiment]:
    """Return the function that builds the experiment of a service."""
    build_it = partial(build, spec)
    build_it.__module__ = __name__
    return build_it


def build(spec: EndpointSpec, parts: RunParts) -> Experiment:
    """Return the experiment of a service.

    Raises:
        SettingsError: a placeholder or a path cannot be used, or the named data do not exist.
        PrerequisiteError: a variable is not set, or there is a budget but no price.
    """
    settings = parts.settings
    requests = Requests(spec, settings.path("."), must_know=access_of(settings).calls_network)
    _check_budget(parts, spec)
    data = parts.data(data_of(spec.name, settings))
    most = most_contexts(settings)
    placing = placing_in(data, spec.name, most=most)
    reader = AnswerReader(spec.read, spec.name, most)
    version = _version(spec, parts, requests)
    client = _client(spec, parts, requests, reader, version)
    usd: Cost = lambda *used: _cost(parts, spec, *used)  # noqa: E731
    pipeline = EndpointPipeline(spec, requests, client, reader, placing, usd, version)
    made_of = {**ingredients_of(spec), "documents": data.digest if data.has_documents else "", "version": version}
    retriever = EndpointRetriever(pipeline.answer, parts.run)
    retrieves = bool(spec.read.contexts or spec.traces)
    return Experiment(
        spec.name, pipeline, data.name, made_of, retriever=retriever, is_reusable=False, retrieves=retrieves
    )


def _version(spec: EndpointSpec, parts: RunParts, requests: Requests) -> str:
    """Return the version that the service states now. A replay calls nobody: it has the version recorded last."""
    if not spec.version:
        return ""
    access = access_of(parts.settings)
    if access.calls_nobody:
        return recorded_version(_folder(spec, parts))
    # In mode auto the requests may lack values of variables, for no question is sent.
    asking = requests if access.calls_network else None
    return parts.version_of(spec, lambda: ask_for_version(spec, parts.settings, asking))


def ask_for_version(spec: EndpointSpec, settings: Settings, requests: Requests | None = None) -> str:
    """Ask a service for its version. Mode auto does so, too, to replay nothing of another version.

    Raises:
        PrerequisiteError: it states none.
    """
    asks = requests or Requests(spec, settings.path("."))
    own = {name: value for name, value in asks.headers.items() if name != "content-type"}
    try:
        return asked_version(spec, asks.url, own, settings.path("."), spec.timeout or settings.timeout)
    except PrerequisiteError as error:
        if access_of(settings).calls_network:
            raise
        raise PrerequisiteError(f"{error} Or answer from recordings, whatever runs there: --rag-mode=replay.") from None


def _folder(spec: EndpointSpec, parts: RunParts) -> Path:
    return parts.settings.folder("cassettes") / SERVICES / spec.name


def ingredients_of(spec: EndpointSpec) -> dict[str, Any]:
    """Return the fields of a spec that decide answers. Headers count by name: values are secret or do not matter."""
    told: dict[str, Any] = {each.name: getattr(spec, each.name) for each in fields(spec)}
    said = {name: value for name, value in told.items() if name not in _NOT_ITS_ANSWERS}
    if not spec.traces:
        # Rows of older releases know nothing of it.
        said.pop("traces")
    headers = sorted(name.lower() for name, _ in spec.headers)
    tables = {name: asdict(getattr(spec, name)) for name in ("read", "stream", "history", "session")}
    return {**said, "headers": headers, **tables}


def _client(spec: EndpointSpec, parts: RunParts, requests: Requests, reader: AnswerReader, version: str) -> Client:
    def connect() -> Exchange:
        # Its imports are needed only where something is not recorded.
        from rag_harness.pipelines.endpoint.exchange import Exchange

        return Exchange(spec, parts.endpoints.meter, reader.usage)

    timeout = spec.timeout or parts.settings.timeout
    playback = _playback(spec, parts, requests, version)
    client = Client(spec, reader, connect, timeout, playback, requests.secrets, _listening(spec, parts, requests))
    parts.endpoints.close_too(client.aclose)
    return client


def _listening(spec: EndpointSpec, parts: RunParts, requests: Requests) -> Listening | None:
    """Return what receives the service's spans. It listens before anything is asked, so that a taken port stops it."""
    if not spec.traces:
        return None
    # Its imports are needed only where spans are received, or were.
    from rag_harness.pipelines.endpoint.listening import Listening, check_one_process

    secrets = [*secrets_of(parts.settings), *requests.secrets]
    listening = Listening(spec, Cleaner(secrets, parts.scrub))
    if access_of(parts.settings).calls_network:
        check_one_process(spec, parts.settings)
        listening.open()
    return listening


def _playback(spec: EndpointSpec, parts: RunParts, requests: Requests, version: str) -> Playback | None:
    settings = parts.settings
    access = access_of(settings)
    if not access.reads_recordings:
        return None
    secrets = [*secrets_of(settings), *requests.secrets]
    cassettes = OwnCassettes(_folder(spec, parts), version, secrets, parts.scrub, settings.abridge)
    return Playback(
        cassettes,
        access.calls_network,
        access.records,
        ask_again=settings.rerecord and access.records,
        refuse=access.refusal(local=False),
        tell=cassettes.heard if access.records else None,
    )


def _check_budget(parts: RunParts, spec: EndpointSpec) -> None:
    """Refuse a budget where the highest cost of a call is unknown."""
    budget = parts.settings.budget
    if budget and spec.usd_per_call is None and not _is_bounded(parts, spec):
        raise PrerequisiteError(
            f"The budget is {budget:g} USD, but nobody knows what a call of {spec.name!r} costs. Say it in "
            f"{spec.where}: usd_per_call = …, 0 where it is free; a chat endpoint needs a model with a price, and "
            f"max_tokens in its body. Or leave the budget out."
        )


def _is_bounded(parts: RunParts, spec: EndpointSpec) -> bool:
    """Return whether a call is charged by tokens and its tokens have a limit."""
    body = json.loads(spec.body) if spec.body else None
    if not isinstance(body, dict) or not body.keys() >= {"model", "messages", "max_tokens"}:
        return False
    return prices_of(parts.settings).price(str(body["model"])) is not None


def _cost(parts: RunParts, spec: EndpointSpec, model: str, usage: Usage) -> float | None:
    if spec.usd_per_call is not None or not usage.prompt_tokens:
        return spec.usd_per_call
    return _price(parts, spec, model, usage.prompt_tokens, usage.completion_tokens)


def _price(parts: RunParts, spec: EndpointSpec, model: str, prompt: int = 0, completion: int = 0) -> float | None:
    prices = prices_of(parts.settings)
    known = next((name for name in (model, spec.model) if name and prices.price(name) is not None), None)
    return None if known is None else prices.cost(known, prompt, completion)
