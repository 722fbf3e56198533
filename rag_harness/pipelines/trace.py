"""The trace of a pipeline on one query: times, hits, and the stage that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.errors import ModelCallError, ModelOutputError
from rag_harness.pipelines.sent_messages import kept_meanwhile
from rag_harness.pipelines.watched import watched_call
from rag_harness.types import Answer, Call, Completion, Decision, Hit, Message, PipelineOutput, Stage, Usage
from rag_harness.work.local_work import on_local_thread
from rag_harness.work.worker_process import worker

if TYPE_CHECKING:
    from rag_harness.protocols import ChatModel, Reranker, Retriever

_T = TypeVar("_T")


@dataclass
class Trace:
    """The record of a trial, filled stage by stage. An error carries it, so a row shows how far its trial came."""

    retrieved: list[Hit] = field(default_factory=list)
    context: list[Hit] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)
    calls: dict[str, list[Call]] = field(default_factory=dict)
    details: dict[str, dict[str, Any]] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    failed_stage: str = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage. An exception that leaves it gets the stage's name and this trace."""
        # A stage may run several times, e.g. once for each sub-question.
        with self._timed(name, lambda ms: self.milliseconds.update({name: self.milliseconds.get(name, 0.0) + ms})):
            yield

    @contextmanager
    def _timed(self, name: str, ended: Callable[[float], None]) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            # A deadline ends a trial by cancelling it.
            self.failed_stage = self.failed_stage or name
            error.rag_trace = self  # type: ignore[union-attr]
            if isinstance(error, ModelCallError):
                # The time of a stage excludes waiting, as for a call that came back.
                started += error.waited_ms / 1000
            raise
        finally:
            ended((perf_counter() - started) * 1000)

    async def off_loop(self, name: str, work: Callable[..., _T], *args: object) -> _T:
        """Run CPU-bound ``work`` as a stage off the event loop, so that model calls continue. Waiting is not timed."""

        def timed() -> _T:
            with self.stage(name):
                return work(*args)

        return await on_local_thread(timed)

    async def beside(self, name: str, work: Callable[..., _T], *args: object) -> _T:
        """Run pure ``work`` of picklable arguments as a stage: in a server's worker process, else as ``off_loop``."""
        there = worker()
        if there is None:
            return await self.off_loop(name, work, *args)
        with self._timed(name, lambda _: None):
            result, milliseconds = await there.run(work, *args)
        self.milliseconds[name] = self.milliseconds.get(name, 0.0) + milliseconds
        return result

    async def retrieve(self, retriever: Retriever, query: str, k: int) -> None:
        """Run the stage ``retrieve``. A lookup that another trial has made is reused."""
        self.retrieved = await self._share("retrieve", retriever, retriever.retrieve, query, k)

    async def rerank(self, reranker: Reranker, query: str, k: int) -> None:
        """Run the stage ``rerank`` over the retrieved hits, and keep the best ``k`` as context."""
        ranked = await self._share("rerank", reranker, reranker.rerank, query, tuple(self.retrieved))
        self._keep_best(ranked, k)

    async def _share(self, name: str, part: object, work: Callable[..., _T], *args: Any) -> _T:
        shared = getattr(part, "shared", None)
        if shared is None:
            return await self.off_loop(name, work, *args)
        before = self.milliseconds.get(name, 0.0)
        with self.stage(name):
            result: _T
            # A retriever of a service also returns its calls.
            result, milliseconds, *calls = await shared.ask(args)
        for made in calls:
            self.calls.setdefault(name, []).extend(made)
        self.milliseconds[name] = before + milliseconds
        return result

    def _keep_best(self, ranked: Sequence[Hit], k: int) -> None:
        """Take the first ``k`` reranked hits as context. The retrieved hits keep their order and get the scores."""
        by_id = {hit.chunk.chunk_id: hit for hit in ranked}
        self.context = list(ranked[:k])
        self.retrieved = [replace(by_id.get(hit.chunk.chunk_id, hit), rank=hit.rank) for hit in self.retrieved]

    async def complete(
        self,
        chat: ChatModel,
        messages: Sequence[Message],
        response_format: Mapping[str, Any] | None = None,
        stage: str = "generate",
        role: str = "answer",
    ) -> Completion:
        """Ask a model as a part of ``stage``. The call is noted with its messages."""
        watched = watched_call(stage, role, self.context, response_format is not None)
        with self._asking(stage) as calls, watched, kept_meanwhile(messages):
            try:
                said = await chat.complete(messages, response_format)
            except ModelOutputError as error:
                if error.said is not None:
                    calls.append(call_of(role, error.said, messages))  # a reply that cannot be used costs as much
                raise
            calls.append(call_of(role, said, messages))
        return said

    @contextmanager
    def _asking(self, stage: str) -> Iterator[list[Call]]:
        """Time a call of a model, and yield where it is noted."""
        with self.stage(stage):
            yield self.calls.setdefault(stage, [])

    def note(self, stage: str, **detail: Any) -> None:
        """Add notes of ``stage`` to the row."""
        self.details.setdefault(stage, {}).update(detail)

    def output(self, answer: Answer, confidence: float | None = None) -> PipelineOutput:
        """Return the output of the pipeline: the answer and this trace."""
        calls = self._every_call()
        return PipelineOutput(
            answer,
            tuple(self.retrieved),
            tuple(self.context),
            usage=reduce(add, (call.usage for call in calls), Usage()),
            model=calls[-1].model if calls else "",
            stages=tuple(self._stages()),
            decisions=tuple(self.decisions),
            confidence=confidence,
        )

    def _every_call(self) -> list[Call]:
        return [call for made in self.calls.values() for call in made]

    def _stages(self) -> Iterator[Stage]:
        for name, ms in self.milliseconds.items():
            calls = tuple(self.calls.get(name, ()))
            # A replayed call has the time of its recording. The time of a live call excludes waiting for the limiter.
            spent = sum(call.ms for call in calls) if calls else ms
            yield Stage(name, spent, calls, self.details.get(name, {}))


def call_of(role: str, said: Completion, messages: Sequence[Message]) -> Call:
    """Return a call that came back, for the row, with the messages that were sent."""
    return Call(
        role,
        said.model,
        said.usage,
        said.total_ms,
        said.ttft_ms,
        said.waited_ms,
        said.retries,
        said.recorded,
        tuple(messages),
        recorded_at=said.recorded_at,
        finish_reason=said.finish_reason,
        asked_without=said.asked_without,
        reasoning=said.reasoning,
    )
