"""The pipeline of a service: question, answer, documents of the contexts, and the check before the first question."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

from rag_harness.core.concurrency import on_local_thread
from rag_harness.core.errors import ModelCallError, PrerequisiteError, TraceError
from rag_harness.core.settings import Access
from rag_harness.core.settings.endpoints import EndpointSpec
from rag_harness.core.types import SERVICE, SESSION, Call, Decision, Hit, Message, PipelineOutput, Query, Stage, Usage
from rag_harness.models.recording.playback import proxy_of
from rag_harness.pipelines.endpoint.answer import (
    AnswerReader,
    PlacedContexts,
    Placing,
    ServiceAnswer,
    answer_of,
    finish_reason_of,
)
from rag_harness.pipelines.endpoint.client import Client, ServiceReply, hidden
from rag_harness.pipelines.endpoint.requests import Request, Requests
from rag_harness.pipelines.otel.steps import read_trace
from rag_harness.pipelines.trace import Trace
from rag_harness.pipelines.traced_app import output_of_trace

Cost = Callable[[str, Usage], "float | None"]
"""Returns the USD of a call, given its model and usage; None where it is unknown."""


class EndpointPipeline:
    """Answers queries by asking a service.

    Args:
        spec: the service.
        requests: makes the requests.
        client: sends them.
        reader: reads the answers.
        placing: finds the documents of contexts.
        usd: the price of a call.
        version: the service's version; empty where it has none.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        requests: Requests,
        client: Client,
        reader: AnswerReader,
        placing: Placing,
        usd: Cost,
        version: str = "",
    ) -> None:
        self._spec, self._requests, self._client = spec, requests, client
        self._reader, self._placing, self._usd, self.version = reader, placing, usd, version

    async def answer(self, query: Query) -> PipelineOutput:
        """Ask the service. A missing part of the answer is an error, never an empty answer."""
        trace = Trace()
        with trace.stage("request"):
            request = self._requests.of(query)
        if request.left_out:
            trace.note("ask", turns_left_out=request.left_out)
        with trace.stage("ask"):
            reply = await self._client.ask(request)
        trace.calls["ask"] = [self._call(reply.sent or request, reply)]
        if reply.session is not None:
            trace.note("ask", **{SESSION: reply.session})
        with trace.stage("read"):
            said = self._reader.read(reply.document)
            # Looking up texts is CPU-bound. Off the loop, calls in flight continue.
            placed = (
                await on_local_thread(lambda: self._placing.place(said.contexts)) if said.contexts else PlacedContexts()
            )
            output = self._output(trace, said, placed)
            if reply.spans is not None:
                output = await self._traced(output, said, reply)
        return output

    async def _traced(self, output: PipelineOutput, said: ServiceAnswer, reply: ServiceReply) -> PipelineOutput:

        try:
            return await on_local_thread(lambda: told_by_trace(output, said, reply, self._placing))
        except TraceError as error:
            error.raw = said.answer
            raise

    def is_recorded(self, query: Query) -> bool:
        """Return whether the answer to ``query`` is recorded; False for a query that cannot be sent."""
        try:
            return self._client.is_recorded(self._requests.of(query))
        except ModelCallError:
            return False

    def _output(self, trace: Trace, said: ServiceAnswer, placed: PlacedContexts) -> PipelineOutput:
        # Reading is the harness's own work. The time of a trial is only the service's time.
        for own in ("request", "read"):
            trace.milliseconds.pop(own, None)
        told: dict[str, object] = {} if said.abstained is None else {"abstained": said.abstained}
        if self._spec.read.contexts:
            told["placed"] = dict(placed.how)
        trace.note("ask", **told)
        trace.retrieved = trace.context = list(placed.hits)
        if said.decision:
            trace.decisions.append(Decision("service", said.decision))
        output = trace.output(answer_of(said, placed.hits), said.confidence)
        # Its description says that the answer may be empty: it is then asked for what it finds.
        return replace(output, retrieval_only=not said.answer.strip())

    def _call(self, request: Request, reply: ServiceReply) -> Call:
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
            recorded_at=reply.recorded_at,
            version=self.version,
            finish_reason=finish_reason_of(reply.document),
        )


# The retriever of a service, used by the golden suite. It ranks the contexts of the service's answer.

Answer = Callable[[Query], Awaitable[PipelineOutput]]


class EndpointRetriever:
    """Returns the contexts of a service.

    Args:
        answer: asks the service.
        run: runs a coroutine on the loop of the trials and waits for it.
    """

    def __init__(self, answer: Answer, run: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self.shared, self._run = _ServiceCall(answer), run

    def retrieve(self, query: str, k: int) -> list[Hit]:
        """Return the contexts of the answer, in its order, ``k`` at most."""
        hits, *_ = self._run(self.shared.ask((query, k)))
        return list(hits)


class _ServiceCall:
    """Asks the service on the loop of the trials, in the same way as shared stages."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    async def ask(self, args: tuple[str, int]) -> tuple[list[Hit], float, list[Call]]:
        """Return the hits, the service's milliseconds (recorded ones in a replay), and the calls."""
        query, k = args
        started = perf_counter()
        output = await self._answer(Query("", query))
        spent = sum(stage.ms for stage in output.stages) or (perf_counter() - started) * 1000
        return list(output.retrieved[:k]), spent, list(output.calls)


def told_by_trace(output: PipelineOutput, said: ServiceAnswer, reply: ServiceReply, placing: Placing) -> PipelineOutput:
    """Return the output of a service's reply with the steps, searches and contexts of its trace.

    Args:
        output: by the reply.
        said: the content of the reply.
        reply: has the spans, and the time that the service took.
        placing: finds the documents of chunks.

    Raises:
        TraceError: spans are cut, or lack the documents that were found.
    """
    spans = reply.spans or ()
    seen = read_trace(spans, said.answer)
    told = output_of_trace(seen, placing, said.answer)
    is_silent = not said.contexts
    return replace(
        output,
        answer=answer_of(said, told.context) if is_silent and said.citations is None else output.answer,
        retrieved=told.retrieved or output.retrieved,
        context=told.context if is_silent else output.context,
        stages=_stages(output.stages, [_as_recorded(stage, reply) for stage in told.stages], reply.total_ms),
        total_ms=reply.total_ms,
        trace_id=spans[0].trace_id if spans else "",
    )


def _as_recorded(stage: Stage, reply: ServiceReply) -> Stage:
    calls = (replace(call, recorded=reply.recorded, recorded_at=reply.recorded_at) for call in stage.calls)
    return replace(stage, calls=tuple(calls))


def _stages(own: Sequence[Stage], told: Sequence[Stage], total_ms: float) -> tuple[Stage, ...]:
    """Return the steps of the reply and of the trace. Time, tokens and money count once."""
    inside = sum(stage.ms for stage in told)
    asks = [replace(stage, ms=max(total_ms - inside, 0.0)) if stage.calls else stage for stage in own]
    calls = [call for stage in asks for call in stage.calls]
    if any(call.usage.prompt_tokens or call.usage.completion_tokens for call in calls):
        # The reply says what all of it came to.
        return (*asks, *(replace(stage, calls=()) for stage in told))
    if not any(stage.calls for stage in told):
        return (*asks, *told)
    if any(call.usd is not None for call in calls):
        # The price of an answer is known, and the trace says of how many tokens it is.
        told = [_with_calls(stage, lambda call: replace(call, usd=0.0)) for stage in told]
    else:
        asks = [_with_calls(stage, lambda call: replace(call, usd=0.0)) for stage in asks]
    return (*(_with_calls(stage, lambda call: replace(call, usage=Usage())) for stage in asks), *told)


def _with_calls(stage: Stage, change: Callable[[Call], Call]) -> Stage:
    return replace(stage, calls=tuple(map(change, stage.calls)))


_WAITS = (0.0, 1.0, 2.0)
"""Seconds before each attempt to connect. A service that was just started needs a moment."""
_TIMEOUT = 5.0


def check_ready(
    spec: EndpointSpec,
    pipeline: EndpointPipeline,
    queries: Sequence[Query],
    access: Access,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Check that questions can be answered: from recordings, or by a reachable service.

    Args:
        spec: the service.
        pipeline: the pipeline of the service.
        queries: the queries of this run.
        access: the rights of the run's mode.
        wait: sleeps; replaced in tests.

    Raises:
        PrerequisiteError: nothing listens at the service's address; or nothing is recorded, and the mode may not ask.
    """
    left = [query for query in queries if not (access.reads_recordings and pipeline.is_recorded(query))]
    if not left:
        return
    if access.calls_network:
        _check_reachable(spec, wait)
    elif len(left) == len(queries):
        raise PrerequisiteError(
            f"No answer of {spec.name!r}{_of_version(pipeline)} to these {len(queries)} questions is recorded, and "
            f"mode {access.mode} asks no service. Ask it now: --rag-mode=live. Or keep its answers, to replay them "
            f"later: --rag-mode=record"
        )


def _of_version(pipeline: EndpointPipeline) -> str:
    return f", version {pipeline.version}," if pipeline.version else ""


def _check_reachable(spec: EndpointSpec, wait: Callable[[float], None]) -> None:
    address = urlsplit(spec.url)
    if not address.hostname or "$" in address.netloc or "{" in address.netloc:
        return  # the address depends on a question or the environment
    if proxy_of(address.scheme, address.hostname):
        return  # the proxy may reach what this machine does not
    port = address.port or (443 if address.scheme == "https" else 80)
    for seconds in _WAITS:
        wait(seconds)
        try:
            socket.create_connection((address.hostname, port), _TIMEOUT).close()
        except OSError as error:
            why = error.strerror or str(error)
        else:
            return
    raise PrerequisiteError(
        f"Nothing answers at {spec.url}, the url of endpoint {spec.name!r}: {why}. Start the service, or mend the url "
        f"in {spec.where}."
    )
