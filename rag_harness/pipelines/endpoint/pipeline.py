"""The pipeline of a service: it asks the service, and finds the documents of the contexts."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

from rag_harness.errors import ModelCallError, TraceError
from rag_harness.pipelines.endpoint.client import Client, ServiceReply
from rag_harness.pipelines.endpoint.placing import PlacedContexts, Placing
from rag_harness.pipelines.endpoint.refusals import hidden
from rag_harness.pipelines.endpoint.request import Request
from rag_harness.pipelines.endpoint.requests import Requests
from rag_harness.pipelines.endpoint.said import answer_of
from rag_harness.pipelines.endpoint.service_answer import AnswerReader, ServiceAnswer, finish_reason_of
from rag_harness.pipelines.trace import Trace
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.types import SERVICE, SESSION, Call, Decision, Message, PipelineOutput, Query, Usage
from rag_harness.work.local_work import on_local_thread

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
        from rag_harness.pipelines.endpoint.told_by_trace import told_by_trace

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
