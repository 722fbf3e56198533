"""A question on its way through a server: quota, inputs, answer, trace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from rag_harness.core.concurrency import in_a_thread
from rag_harness.core.errors import DeadlineError, ModelCallError, ModelOutputError, QueryTooLongError, RagHarnessError
from rag_harness.core.log import log
from rag_harness.core.settings.configurations import WEAK_SIGNALS
from rag_harness.core.types import Answer, Decision, Hit, PipelineOutput, Query
from rag_harness.models.calls import refuse_long, somebody_waits
from rag_harness.pipelines.trace import Trace
from rag_harness.pipelines.user_pipelines import declined
from rag_harness.service.answer_stream import AnswerEvent, Shows, events, retrieval
from rag_harness.service.app_state import Owner, Service
from rag_harness.service.citations import cited
from rag_harness.service.corpus.contents import Serving
from rag_harness.service.keys import Principal, grant
from rag_harness.service.middleware import CLIENT_LEFT, problem_of_any
from rag_harness.service.monitoring import log_context
from rag_harness.service.observations import FAILED, LEFT, Observed, TraceIds
from rag_harness.service.problems import ProblemError
from rag_harness.service.schemas import Answered, Cited, Debug, Found, Mode, Outcome, Step

_HISTORY = "history"


class ReadInputs(dict[str, Any]):
    """Inputs as a pipeline gets them.

    Attributes:
        has_history: whether anything was said before.
        history_was_read: whether ``history`` was looked up, or all inputs were gone through, as a copy does.
    """

    def __init__(self, inputs: Any = ()) -> None:
        super().__init__(inputs)
        self.has_history = bool(super().get(_HISTORY))
        self.history_was_read = False

    def _notice(self, key: object) -> None:
        self.history_was_read |= key == _HISTORY

    def __getitem__(self, key: str) -> Any:
        self._notice(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._notice(key)
        return super().__contains__(key)

    def __iter__(self) -> Iterator[str]:
        self.history_was_read = True
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:
        self._notice(key)
        return super().get(key, default)

    def keys(self) -> Any:
        self.history_was_read = True
        return super().keys()

    def values(self) -> Any:
        self.history_was_read = True
        return super().values()

    def items(self) -> Any:
        self.history_was_read = True
        return super().items()

    def copy(self) -> Any:
        self.history_was_read = True
        return super().copy()


NOT_NOW = "I can't answer that right now."
_OUTCOMES: dict[str, Outcome] = {"pass": "pass", "warn": "warn", "abstain": "abstain"}


@dataclass(frozen=True, slots=True)
class ServiceQuestion:
    """A question and how to answer it: ``trace_id`` names the query, ``mode`` is normal or strict."""

    text: str
    trace_id: str
    inputs: ReadInputs
    mode: Mode = "normal"

    def query(self) -> Query:
        """Return what the pipeline sees."""
        return Query(self.trace_id, self.text, self.inputs)


async def answer(serving: Serving, question: ServiceQuestion, seconds: float) -> PipelineOutput:
    """Return the experiment's answer. If its model cannot be asked, return an abstention with what was found.

    Raises:
        ProblemError: the answer is missing: the question is too long, took too long, or failed before anything was
            found.
    """
    strict = question.mode == "strict"
    experiment = serving.strict if strict and serving.strict is not None else serving.experiment
    try:
        with somebody_waits():
            output: PipelineOutput = await asyncio.wait_for(experiment.pipeline.answer(question.query()), seconds)
        refuse_long(output.answer.text, serving.longest_answer, "The model")
        output = replace(output, answer=replace(output.answer, abstained=declined(output.answer, serving.refusals)))
    except QueryTooLongError as error:
        raise query_too_long(error) from error
    except (ModelCallError, ModelOutputError, DeadlineError) as error:
        output = _without_a_model(error)
    except (TimeoutError, asyncio.TimeoutError) as error:
        output = _too_slow(error, seconds)
    except RagHarnessError as error:
        log.warning("Question %s: %s", question.trace_id, error)
        raise ProblemError(503, "cannot_answer", "Nothing can be answered now; the server's log says why.") from error
    return _held_back(output) if strict and not _is_given_in_strict_mode(output) else output


def query_too_long(error: QueryTooLongError) -> ProblemError:
    """Return the problem of a question that is too long for the embedder. Asking it again does not help."""
    detail = f"The question has {error.tokens} tokens, and may have {error.most}. Ask a shorter one."
    return ProblemError(413, "query_too_long", detail, extra={"tokens": error.tokens, "limit": error.most})


def _too_slow(error: Exception, seconds: float) -> PipelineOutput:
    """Return an abstention: the time was over before the model had answered.

    Raises:
        ProblemError: the time was over before anything was found.
    """
    trace = _trace_of(error.__cause__)
    if trace is None:
        raise ProblemError(504, "too_slow", f"No answer within {seconds:g} s. Ask again, or ask for less.") from error
    log.warning("The model did not answer within %g s", seconds)
    return _abstains(trace, "TooSlow")


def _without_a_model(error: Exception) -> PipelineOutput:
    """Return an abstention: the model does not answer, or its answer cannot be read."""
    log.warning("The model did not answer: %s", error)
    trace = _trace_of(error)
    if trace is None:
        raise ProblemError(
            503,
            "model_unavailable",
            "The model does not answer, and nothing was found without it.",
            {"Retry-After": "5"},
        ) from error
    return _abstains(trace, type(error).__name__)


def _trace_of(error: BaseException | None) -> Trace | None:
    """Return the trace of the work before an error; None if nothing was found before it."""
    trace = getattr(error, "rag_trace", None)
    return trace if isinstance(trace, Trace) and trace.context else None


def _abstains(trace: Trace, why: str) -> PipelineOutput:
    trace.decisions.append(Decision("decision", "abstain", reason=f"MODEL_UNAVAILABLE: {why}"))
    return trace.output(Answer(NOT_NOW, abstained=True), 0.0)


def _is_given_in_strict_mode(output: PipelineOutput) -> bool:
    """Whether the output has no warning, or only the warning that the signals of the search are weak."""
    last = _last_decision(output)
    if last is None or outcome_of(output) != "warn":
        return True
    unsure = last.value is not None and last.threshold is not None and last.value < last.threshold
    reasons = reasons_of(output)
    return bool(reasons) and not unsure and all(reason.startswith(WEAK_SIGNALS) for reason in reasons)


def _held_back(output: PipelineOutput) -> PipelineOutput:
    """Return an abstention in place of an answer that mode strict does not give."""
    reasons = [*reasons_of(output), "STRICT: only answers with no warning except a weak search are given"]
    decision = Decision("decision", "abstain", output.confidence, reason="; ".join(reasons))
    said = Answer("I am not sure enough to answer that.", abstained=True)
    return replace(output, answer=said, decisions=(*output.decisions, decision))


def outcome_of(output: PipelineOutput) -> Outcome:
    """Return the outcome of an answer: its last decision; without one, whether the answer itself abstains."""
    last = _last_decision(output)
    if last is not None and last.outcome in _OUTCOMES:
        return _OUTCOMES[last.outcome]
    return "abstain" if declined(output.answer) else "unchecked"


def reasons_of(output: PipelineOutput) -> list[str]:
    """Return the reason codes of the last decision."""
    last = _last_decision(output)
    return [code for code in last.reason.split("; ") if code] if last is not None else []


def _last_decision(output: PipelineOutput) -> Decision | None:
    return next((each for each in reversed(output.decisions) if each.name == "decision"), None)


def links_of(output: PipelineOutput) -> dict[int, str]:
    """Return the link that the pipeline made for each source: what a stage notes as ``links``."""
    noted = (link for stage in output.stages for link in stage.detail.get("links", ()))
    return {link["source"]: str(link["url"]) for link in noted if link.get("url")}


def answer_for_client(
    serving: Serving, output: PipelineOutput, question: ServiceQuestion, debug: bool, is_kept: bool = False
) -> Answered:
    """Return an answer in the form that a client reads, with exact citations.

    ``is_kept`` says that the server keeps its conversation.
    """
    said, inputs = output.answer, question.inputs
    was_read = inputs.history_was_read if inputs.has_history else None
    citations = cited(said.text, said.citations, output.context, serving.document, links_of(output))
    return Answered(
        answer=said.text,
        citations=[Cited(**asdict(each)) for each in citations],
        confidence=output.confidence,
        decision=outcome_of(output),
        reasons=reasons_of(output),
        trace_id=question.trace_id,
        experiment=serving.experiment.id,
        conversation=inputs["conversation"] if is_kept else None,
        turn=inputs["turn"] if is_kept else None,
        history_read=was_read,
        debug=_debug(output) if debug else None,
    )


def _debug(output: PipelineOutput) -> Debug:
    return Debug(
        stages=[Step(name=stage.name, ms=stage.ms, calls=len(stage.calls)) for stage in output.stages],
        retrieved=[_found(hit) for hit in output.retrieved or output.context],
        context=[_found(hit) for hit in output.context],
        decisions=[asdict(each) for each in output.decisions],
    )


def _found(hit: Hit) -> Found:
    section = " > ".join(hit.chunk.section)
    chunk = hit.chunk
    return Found(id=chunk.chunk_id, document=chunk.doc_id, section=section, score=hit.score, text=chunk.text)


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
            ProblemError: the experiment gives no answer.
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
