"""A question on its way through a server, by any interface: granted, answered, watched, traced."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from rag_harness.pipelines.trace import Trace
from rag_harness.service.access.headers import problem_of_any
from rag_harness.service.access.principal import Principal
from rag_harness.service.access.quota import grant
from rag_harness.service.answering import ServiceQuestion, answer, answer_for_client, outcome_of
from rag_harness.service.conversations import Owner
from rag_harness.service.corpus.serving import Serving
from rag_harness.service.disconnecting import CLIENT_LEFT
from rag_harness.service.events import Shows, events
from rag_harness.service.observing.logs import log_context
from rag_harness.service.observing.observed import FAILED, LEFT, Observed
from rag_harness.service.observing.trace_ids import TraceIds
from rag_harness.service.problems import ProblemError
from rag_harness.service.read_inputs import ReadInputs
from rag_harness.service.schemas import Answered
from rag_harness.service.serviced import Service
from rag_harness.service.telling import AnswerEvent, retrieval
from rag_harness.types import Answer, PipelineOutput
from rag_harness.work.local_work import in_a_thread

_SHORT = 4_000
"""Most characters of an answer whose citations are made on the loop: to start a thread costs more than they do."""


class Shape(Protocol):
    """How an interface shows answers."""

    def body(self, asking: QuestionUnderWay, output: PipelineOutput) -> Mapping[str, Any]:
        """Return the body of the answer."""
        ...

    def failure(self, problem: ProblemError) -> Mapping[str, Any]:
        """Return the body for a problem."""
        ...


@dataclass
class QuestionUnderWay:
    """One question to one state of a collection.

    Attributes:
        service: the server that answers.
        principal: the one who asks.
        collection: the name of the collection.
        serving: the collection's state when the question came.
        question: the question, and how to answer it.
        ids: the ids of its trace.
        debug: whether to say how the answer was made.
        conversation: the conversation that it is a turn of, where the server keeps one; else empty.
        pipeline_ms: time that the experiment took, once it has answered, its turns on the answers' loop included.
        answered: the answer in the form of ``POST /query``, once there is one.
    """

    service: Service
    principal: Principal
    collection: str
    serving: Serving
    question: ServiceQuestion
    ids: TraceIds
    debug: bool = False
    conversation: str = ""
    _began: float = field(default_factory=time.time)
    _clock: float = field(default_factory=time.perf_counter)
    _first_token_ms: float | None = None
    pipeline_ms: float = 0.0
    answered: Answered | None = None

    async def granted(self) -> QuestionUnderWay:
        """Grant the question, before any work is done for it.

        Raises:
            ProblemError: the key's quota is used up.
        """
        await grant(self.service.database, self.principal)
        return self

    @property
    def may_withhold(self) -> bool:
        """Whether the experiment verifies its answers, and so may withdraw words that were already sent."""
        return self.serving.strict is not None

    async def output(self) -> PipelineOutput:
        """Return the experiment's output.

        Raises:
            ProblemError: there is no answer.
        """
        return await self._answered(streamed=False)

    async def events(self, shape: Shape, *, holds: bool = False) -> AsyncGenerator[AnswerEvent, None]:
        """Yield the answer as it comes; ``done`` has all of it.

        Args:
            shape: how the interface shows it.
            holds: whether to send no word before the verdict; mode strict does so anyway.
        """
        shows = Shows(partial(shape.body, self), lambda error: shape.failure(problem_of_any(error, self.ids.trace_id)))
        strict = holds or self.question.mode == "strict"
        async with aclosing(events(lambda: self._answered(streamed=True), shows, strict=strict)) as each:
            async for event in each:
                if event.name == "token" and self._first_token_ms is None:
                    self._first_token_ms = self._ms()
                yield event

    def shown(self) -> Answered:
        """Return the answer in the form of ``POST /query``, once there is one."""
        assert self.answered is not None
        return self.answered

    @property
    def owner(self) -> Owner:
        """Whose conversations it may go on with."""
        return self.collection, self.principal.key_id

    async def _answered(self, streamed: bool) -> PipelineOutput:
        if not self.conversation:
            return await self._answered_alone(streamed)
        with self.service.conversations.turn(self.owner, self.conversation, self.question.text) as turn:
            inputs = ReadInputs({**self.question.inputs, **turn.inputs})
            self.question = replace(self.question, inputs=inputs)
            output = await self._answered_alone(streamed)
            turn.answer = output.answer.text
            return output

    async def _answered_alone(self, streamed: bool) -> PipelineOutput:
        with log_context(trace_id=self.ids.trace_id), self.service.metrics.in_flight():
            try:
                output, kept = await self.service.answers.run(self._made(time.perf_counter()))
            except BaseException as error:
                self._observe(self._failed(error, streamed))
                raise
            self._observe(self._seen(outcome_of(output), output, streamed, answered=kept))
            return output

    async def _made(self, began: float) -> tuple[PipelineOutput, dict[str, Any]]:
        """Return the output, and the answer as the page shows it again. Runs on the loop of the answers."""
        output = await answer(self.serving, self.question, self.service.options.seconds)
        self.pipeline_ms = (time.perf_counter() - began) * 1000
        if len(output.answer.text) <= _SHORT:
            return output, self._shown_and_kept(output)
        # Making the citations of a long answer takes a while.
        return output, await in_a_thread(partial(self._shown_and_kept, output))

    def _shown_and_kept(self, output: PipelineOutput) -> dict[str, Any]:
        """Make the answer for the client, and return it as the page shows it again."""
        self.answered = answer_for_client(self.serving, output, self.question, self.debug, bool(self.conversation))
        again = {"question": self.question.text, "mode": self.question.mode, **retrieval(output.context).data}
        return {**again, **self.answered.model_dump(mode="json", exclude={"debug"})}

    def _observe(self, seen: Observed) -> None:
        self.service.metrics.answered(seen)
        self.service.traces.keep(seen)

    def _failed(self, error: BaseException, streamed: bool) -> Observed:
        trace = getattr(error.__cause__ or error, "rag_trace", None)
        done = trace if isinstance(trace, Trace) else Trace()
        if not isinstance(error, Exception):
            return self._seen(LEFT, done.output(Answer("")), streamed, status=CLIENT_LEFT)
        status = error.status if isinstance(error, ProblemError) else 500
        failure = {"status": status, "failed_stage": done.failed_stage, "error_type": _type_of(error)}
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


def _type_of(error: Exception) -> str:
    return error.code if isinstance(error, ProblemError) else type(error).__name__
