"""A question on its way through a server: granted, answered, watched, traced, however it is sent."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rag_harness.pipelines.trace import Trace
from rag_harness.service.access.headers import told
from rag_harness.service.access.principal import Principal
from rag_harness.service.access.quota import grant
from rag_harness.service.answering import Question, answer, outcome_of, shown
from rag_harness.service.corpus.serving import Serving
from rag_harness.service.events import Shows, events
from rag_harness.service.observing.logs import about
from rag_harness.service.observing.observed import FAILED, Observed
from rag_harness.service.observing.trace_ids import TraceIds
from rag_harness.service.problems import ProblemError
from rag_harness.service.schemas import Answered
from rag_harness.service.serviced import Service
from rag_harness.service.telling import Event
from rag_harness.types import Answer, PipelineOutput


@dataclass
class Asking:
    """One question to one state of a collection.

    Attributes:
        service: that answers.
        principal: who asks.
        collection: whose documents are asked.
        serving: the state of them when the question came.
        question: what is asked, and how.
        ids: of its trace.
        debug: say how the answer came about.
        pipeline_ms: what the experiment took, once it has answered.
    """

    service: Service
    principal: Principal
    collection: str
    serving: Serving
    question: Question
    ids: TraceIds
    debug: bool = False
    _began: float = field(default_factory=time.time)
    _clock: float = field(default_factory=time.perf_counter)
    _first_token_ms: float | None = None
    pipeline_ms: float = 0.0

    async def granted(self) -> Asking:
        """Have the question granted, before anything is done about it.

        Raises:
            ProblemError: the key's quota is used up.
        """
        await grant(self.service.database, self.principal)
        return self

    async def whole(self) -> Answered:
        """Return the answer.

        Raises:
            ProblemError: there is none.
        """
        return self._shown(await self._answered(streamed=False))

    async def events(self) -> AsyncIterator[Event]:
        """Yield the answer as it comes; ``done`` has the whole of it."""
        shows = Shows(self._body, lambda error: told(error, self.ids.trace_id).body())
        strict = self.question.mode == "strict"
        async for event in events(lambda: self._answered(streamed=True), shows, strict=strict):
            if event.name == "token" and self._first_token_ms is None:
                self._first_token_ms = self._ms()
            yield event

    def _body(self, output: PipelineOutput) -> Mapping[str, Any]:
        return self._shown(output).model_dump(mode="json")

    def _shown(self, output: PipelineOutput) -> Answered:
        return shown(self.serving, output, self.ids.trace_id, self.debug)

    async def _answered(self, streamed: bool) -> PipelineOutput:
        with about(trace_id=self.ids.trace_id), self.service.metrics.in_flight():
            began = time.perf_counter()
            try:
                output = await answer(self.serving, self.question, self.service.options.seconds)
            except BaseException as error:
                self._observe(self._failed(error, streamed))
                raise
            self.pipeline_ms = (time.perf_counter() - began) * 1000
            self._observe(self._seen(outcome_of(output), output, streamed))
            return output

    def _observe(self, seen: Observed) -> None:
        self.service.metrics.answered(seen)
        self.service.traces.keep(seen)

    def _failed(self, error: BaseException, streamed: bool) -> Observed:
        trace = getattr(error.__cause__ or error, "rag_trace", None)
        done = trace if isinstance(trace, Trace) else Trace()
        status = error.status if isinstance(error, ProblemError) else 499 if not isinstance(error, Exception) else 500
        failure = {"status": status, "failed_stage": done.failed_stage, "error_type": type(error).__name__}
        return self._seen(FAILED, done.output(Answer("")), streamed, **failure)

    def _seen(self, outcome: str, output: PipelineOutput, streamed: bool, **more: Any) -> Observed:
        return Observed(
            self.ids,
            self.collection,
            self.serving.experiment.id,
            self.question.text,
            outcome,
            self._began,
            self._ms(),
            output,
            self.question.inputs,
            self.question.mode,
            key_id=self.principal.key_id,
            streamed=streamed,
            first_token_ms=self._first_token_ms,
            **more,
        )

    def _ms(self) -> float:
        return (time.perf_counter() - self._clock) * 1000
