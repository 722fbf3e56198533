"""A service as an experiment: asks it, reads what it said, and finds out which documents its contexts are from."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from rag_harness.errors import ModelCallError, PrerequisiteError
from rag_harness.local_work import on_local_thread
from rag_harness.pipelines import data_of
from rag_harness.pipelines.endpoint.client import Client, OwnCassettes, Reply
from rag_harness.pipelines.endpoint.placing import Placed, Placing
from rag_harness.pipelines.endpoint.reading import Reader, Said
from rag_harness.pipelines.endpoint.refusals import hidden
from rag_harness.pipelines.endpoint.request import Request, Requests
from rag_harness.pipelines.endpoint.retriever import EndpointRetriever
from rag_harness.pipelines.endpoint.said import answer_of
from rag_harness.pipelines.parts import RunParts
from rag_harness.pipelines.trace import Trace
from rag_harness.protocols import Experiment
from rag_harness.recording.playback import Playback
from rag_harness.recording.scrubbing import secrets_of
from rag_harness.settings import access_of
from rag_harness.settings.endpoints import EndpointSpec
from rag_harness.settings.prices import prices_of
from rag_harness.types import SERVICE, Call, Decision, Message, PipelineOutput, Query

if TYPE_CHECKING:
    from rag_harness.models.meter import Meter
    from rag_harness.pipelines.endpoint.exchange import Exchange

FOLDER = "endpoints"
"""Of the recordings, below that of the profiles: what a service answers does not depend on the profile."""
_NOT_ITS_ANSWERS = {"name", "where", "data", "timeout", "concurrency", "rpm", "usd_per_call"}
"""What of a spec changes no answer."""


class EndpointPipeline:
    """Answers queries by asking a service.

    Args:
        spec: the service.
        requests: makes what is sent.
        client: asks.
        reader: reads what came back.
        placing: finds the documents of contexts.
        usd: what a call costs by the tokens that it used and its model, None where nobody knows.
    """

    def __init__(
        self, spec: EndpointSpec, requests: Requests, client: Client, reader: Reader, placing: Placing, usd: Any
    ) -> None:
        self._spec, self._requests, self._client = spec, requests, client
        self._reader, self._placing, self._usd = reader, placing, usd

    async def answer(self, query: Query) -> PipelineOutput:
        """Ask the service; what it did not say is an error, and no empty answer."""
        trace = Trace()
        with trace.stage("request"):
            request = self._requests.of(query)
        with trace.stage("ask"):
            reply = await self._client.ask(request)
        trace.calls["ask"] = [self._call(request, reply)]
        with trace.stage("read"):
            said = self._reader.read(reply.document)
            # Looking up texts takes the processor; calls in flight go on meanwhile.
            placed = await on_local_thread(lambda: self._placing.place(said.contexts)) if said.contexts else Placed()
        return self._output(trace, said, placed)

    def is_recorded(self, query: Query) -> bool:
        """Return whether the answer to ``query`` is there already; False where it cannot be asked."""
        try:
            return self._client.is_recorded(self._requests.of(query))
        except ModelCallError:
            return False

    def _output(self, trace: Trace, said: Said, placed: Placed) -> PipelineOutput:
        # Reading is the harness's own work: the time of a trial is the service's.
        for own in ("request", "read"):
            trace.milliseconds.pop(own, None)
        trace.note("ask", placed=dict(placed.how))
        trace.retrieved = trace.context = list(placed.hits)
        if said.decision:
            trace.decisions.append(Decision("service", said.decision))
        return trace.output(answer_of(said, placed.hits), said.confidence)

    def _call(self, request: Request, reply: Reply) -> Call:
        usage = self._reader.usage(reply.document)
        model = self._reader.model(reply.document) or self._spec.model or self._spec.name
        said = {"url": hidden(request.url, self._requests.secrets), "body": request.body}
        sent = Message("request", json.dumps(said, ensure_ascii=False, indent=1))
        return Call(
            SERVICE,
            model,
            usage,
            reply.total_ms,
            reply.ttft_ms,
            reply.waited_ms,
            reply.retries,
            reply.recorded,
            (sent,),
            self._usd(model, usage),
        )


def builder_of(spec: EndpointSpec) -> Callable[[RunParts], Experiment]:
    """Return the function that builds the experiment of a service."""
    build_it = partial(build, spec)
    build_it.__module__ = __name__
    return build_it


def build(spec: EndpointSpec, parts: RunParts) -> Experiment:
    """Return the experiment of a service.

    Raises:
        SettingsError: a placeholder or a path cannot be used.
        PrerequisiteError: a variable is not set, or a budget has no price to go by.
    """
    settings = parts.settings
    reader = Reader(spec.read, spec.name)
    requests = Requests(spec, settings.path("."), must_know=access_of(settings).calls_network)
    if settings.budget and spec.usd_per_call is None and not _is_bounded(parts, spec):
        raise PrerequisiteError(
            f"The budget is {settings.budget:g} USD, but nobody knows what a call of {spec.name!r} costs. Say it in "
            f"{spec.where}: usd_per_call = …, 0 where it is free; a chat endpoint needs a model with a price, and "
            f"max_tokens in its body. Or leave the budget out."
        )
    playback = _playback(spec, parts, requests)
    timeout = spec.timeout or settings.timeout
    meter, secrets = parts.endpoints.meter, requests.secrets
    client = Client(spec, reader, lambda: exchange_of(spec, meter, reader, secrets), timeout, playback, secrets)
    parts.endpoints.close_too(client.aclose)
    data = parts.data(data_of(spec.name, settings))
    has_documents = data.collection is not None or settings.path(data.folder).is_dir()
    placing = Placing(lambda: data.documents if has_documents else (), spec.name)

    def usd(model: str, usage: Any) -> float | None:
        if spec.usd_per_call is not None:
            return spec.usd_per_call
        return _price(parts, spec, model, usage.prompt_tokens, usage.completion_tokens) if usage.prompt_tokens else None

    pipeline = EndpointPipeline(spec, requests, client, reader, placing, usd)
    documents = data.digest if has_documents else ""
    retriever = EndpointRetriever(pipeline.answer, parts.run)
    return Experiment(spec.name, pipeline, data.name, {**ingredients_of(spec), "documents": documents}, retriever)


def exchange_of(spec: EndpointSpec, meter: Meter, reader: Reader, secrets: tuple[str, ...]) -> Exchange:
    """Return the way to a service; what it needs is imported when something is not recorded."""
    from rag_harness.pipelines.endpoint.exchange import Exchange

    return Exchange(spec, meter, reader.usage, secrets)


def ingredients_of(spec: EndpointSpec) -> dict[str, Any]:
    """Return what of a spec decides the answers; headers by their names, for their values are secret or a trifle."""
    told: dict[str, Any] = {each.name: getattr(spec, each.name) for each in fields(spec)}
    said = {name: value for name, value in told.items() if name not in _NOT_ITS_ANSWERS}
    headers = sorted(name.lower() for name, _ in spec.headers)
    return {**said, "headers": headers, "read": vars(spec.read), "stream": vars(spec.stream)}


def _is_bounded(parts: RunParts, spec: EndpointSpec) -> bool:
    """Return whether it is known what a call costs at most."""
    return "max_tokens" in spec.body and _price(parts, spec, spec.model) is not None


def _price(parts: RunParts, spec: EndpointSpec, model: str, prompt: int = 0, completion: int = 0) -> float | None:
    prices = prices_of(parts.settings)
    known = next((name for name in (model, spec.model) if name and prices.price(name) is not None), None)
    return None if known is None else prices.cost(known, prompt, completion)


def _playback(spec: EndpointSpec, parts: RunParts, requests: Requests) -> Playback | None:
    settings = parts.settings
    access = access_of(settings)
    if not access.reads_recordings:
        return None
    folder = settings.path(settings.cassettes) / FOLDER / spec.name
    return Playback(
        OwnCassettes(folder, [*secrets_of(settings), *requests.secrets], parts.scrub, settings.abridge),
        access.calls_network,
        access.records,
        ask_again=settings.rerecord and access.records,
        refuse=access.refusal(local=False),
    )
