"""The trace of a pipeline on one query: times, hits, streaming, the stage that failed, and the steps of an agent."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

from rag_harness.core.concurrency import in_a_thread, on_local_thread
from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.processes import worker
from rag_harness.core.types import (
    Answer,
    Call,
    Completion,
    Decision,
    Hit,
    Message,
    PipelineOutput,
    Stage,
    StepKind,
    Usage,
)
from rag_harness.models.calls import CallListener, hearing

if TYPE_CHECKING:
    from rag_harness.core.protocols import ChatModel, Reranker, Retriever


_SHOWN = ("generate", "answer")
"""Stage and role of the calls that write the answer. Calls of a judge or a rewriter are not shown."""


class Watcher(Protocol):
    """Shows an answer while it is made."""

    def answering(self, context: Sequence[Hit], in_json: bool) -> CallListener:
        """Take the context of the answer, in prompt order; return the listener for the model's text.

        ``in_json`` says that the model writes JSON, with the answer as the value of "answer".
        """
        ...


_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Show the pipeline that runs in the block to ``watcher``, also in its threads and tasks."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


def watched_call(stage: str, role: str, context: Sequence[Hit], in_json: bool) -> AbstractContextManager[None]:
    """Return the context manager for a call of ``stage``. In it, the watcher hears a call that writes the answer."""
    watcher = _watcher.get()
    if watcher is None or (stage, role) != _SHOWN:
        return nullcontext()
    return hearing(watcher.answering(tuple(context), in_json))


# Messages that were sent are kept while the model thinks, so that nothing but the row is left to write afterwards.

Keep = Callable[[Sequence[Message]], object]
_keep: ContextVar[Keep | None] = ContextVar("keep_sent", default=None)


@contextmanager
def keeping_sent(keep: Keep) -> Iterator[None]:
    """Let ``keep`` have the messages of the calls in the block, also in its tasks. It must not raise."""
    token = _keep.set(keep)
    try:
        yield
    finally:
        _keep.reset(token)


@contextmanager
def kept_meanwhile(messages: Sequence[Message]) -> Iterator[None]:
    """Store ``messages`` while the call in the block waits for its answer. A replayed call does not wait."""
    keep = _keep.get()
    if keep is None:
        yield
        return
    turn = asyncio.get_running_loop().call_soon(keep, messages)
    try:
        yield
    finally:
        turn.cancel()


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
    """Return the record of an answered call for its row, with the messages that were sent."""
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


@dataclass
class TrialStep:
    """A step while it runs. The pipeline sets what came out; time and calls are noted.

    Attributes:
        name: its name; for a tool the tool's name.
        kind: its kind.
        input: what went in, plain JSON.
        output: its output, plain JSON; None where it is not known.
        hits: the hits of a search or a reranker, best first.
        detail: notes, by name.
        calls: calls of models that it made.
        ms: milliseconds that it took, without those of steps inside it.
    """

    name: str
    kind: StepKind = ""
    input: Any = None
    output: Any = None
    hits: Sequence[Hit] = ()
    detail: dict[str, Any] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    ms: float = 0.0
    _took: float | None = field(default=None, init=False, repr=False)
    _inside: float = field(default=0.0, init=False, repr=False)

    def took(self, ms: float) -> None:
        """Set the time of the step, where its measured time includes waiting for others."""
        self._took = ms

    def ended(self, ms: float) -> None:
        """Note that it ended after so many milliseconds, those of the steps inside it included."""
        self.ms = max(0.0, ms - self._inside) if self._took is None else self._took

    def holds(self, ms: float) -> None:
        """Note that a step inside it took so many milliseconds."""
        self._inside += ms

    def told(self) -> Stage:
        """Return the step as the row has it. A replayed call has the time of its recording."""
        spent = sum(call.ms for call in self.calls) if self.calls else self.ms
        return Stage(
            self.name, spent, tuple(self.calls), self.detail, self.kind, self.input, self.output, tuple(self.hits)
        )


@dataclass(frozen=True, slots=True)
class GivenSearches:
    """The searches of a trial that are not made. It can be pickled, and is sent to workers.

    Attributes:
        hits: the hits that a search returns instead, by its number in the trial, from 1.
        last: searches after this number return nothing; None where each other search is made.
    """

    hits: Mapping[int, tuple[Hit, ...]] = field(default_factory=dict)
    last: int | None = None

    def of(self, number: int) -> Sequence[Hit] | None:
        """Return the hits of a search; None where it is made."""
        if number in self.hits:
            return self.hits[number]
        return () if self.last is not None and number > self.last else None


_given: ContextVar[GivenSearches | None] = ContextVar("given", default=None)


@contextmanager
def giving(searches: GivenSearches | None) -> Iterator[None]:
    """Give these hits to the pipeline that runs in the block, also in its threads and tasks."""
    token = _given.set(searches)
    try:
        yield
    finally:
        _given.reset(token)


def given_to(number: int) -> Sequence[Hit] | None:
    """Return the hits that replace the search of this number; None where it is not replaced."""
    searches = _given.get()
    return None if searches is None else searches.of(number)


SearchFunction: TypeAlias = Callable[[str, int], "Sequence[Hit] | Awaitable[Sequence[Hit]]"]
"""Query and number of hits -> the hits, best first. It may be ``async def`` or ``def``."""
_under_way: ContextVar[tuple[StepTrace, TrialStep] | None] = ContextVar("under_way", default=None)
"""The step that runs, with its trace."""


@dataclass
class StepTrace(Trace):
    """The record of a trial of an agent, step by step. Steps may run at once.

    ``retrieved`` is the union of the hits, in the order in which they were found. ``context`` is what the model is
    given: the pipeline sets it. Used as ``with StepTrace() as trace:``, every error of the block shows how far it came;
    without that, only an error inside a step does.
    """

    steps: list[TrialStep] = field(default_factory=list)

    def __enter__(self) -> StepTrace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            error.rag_trace = self  # type: ignore[attr-defined]

    @contextmanager
    def step(self, name: str, kind: StepKind = "", input: Any = None) -> Iterator[TrialStep]:
        """Time a step of any kind. An error that leaves the step is noted in it, and gets this trace."""
        made, above = TrialStep(name, kind, input), _under_way.get()
        self.steps.append(made)
        token = _under_way.set((self, made))

        def ended(ms: float) -> None:
            made.ended(ms)
            if above is not None and above[0] is self:
                above[1].holds(ms)

        try:
            with self._timed(name, ended):
                yield made
        except (Exception, asyncio.CancelledError) as error:
            made.detail["error"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            _under_way.reset(token)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a step that has only a name."""
        with self.step(name):
            yield

    async def search(self, retriever: Retriever | SearchFunction, query: str, k: int, **how: Any) -> list[Hit]:
        """Search as a step, and return at most ``k`` hits, best first. A lookup of another trial is reused.

        Args:
            retriever: the retriever, or a function that searches.
            query: the text of the search.
            k: number of hits.
            how: the other parameters of the search, as the row has them: ``pages=[…]``.
        """
        number = 1 + sum("search" in step.detail for step in self.steps)
        with self.step("search", "retrieve", {"query": query, **how} if how else query) as step:
            step.detail |= {"search": number, "k": k}
            given = given_to(number)
            if given is None:
                work = cast("Callable[..., Any]", getattr(retriever, "retrieve", cast("Any", retriever)))
                step.hits = list(await self._asked(step, retriever, work, query, k))[:k]
            else:
                step.hits, step.detail["given"] = list(given), True
        self._found(step.hits)
        return list(step.hits)

    async def retrieve(self, retriever: Retriever, query: str, k: int) -> None:
        """Search as a step."""
        await self.search(retriever, query, k)

    async def ranked(self, reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
        """Rerank hits as a step, and return all of them, best first."""
        return await self._share("rerank", reranker, reranker.rerank, query, tuple(hits))

    async def tool(self, name: str, work: Callable[..., Any], /, **arguments: Any) -> Any:
        """Call a tool as a step with its name and its arguments, and return its result.

        ``work`` may be ``async def`` or ``def``. A function that is not a coroutine runs in a thread of its own.
        """
        with self.step(name, "tool", arguments) as step:
            is_async = inspect.iscoroutinefunction(work)
            came = work(**arguments) if is_async else await in_a_thread(lambda: work(**arguments))
            step.output = await came if inspect.isawaitable(came) else came
        return step.output

    @contextmanager
    def _asking(self, stage: str) -> Iterator[list[Call]]:
        with self.step(stage, "generate") as step:
            yield step.calls

    def note(self, stage: str, **detail: Any) -> None:
        """Add notes to the last step of this name; without one, to a new step that took no time."""
        last = next((step for step in reversed(self.steps) if step.name == stage), None)
        if last is None:
            last = TrialStep(stage)
            self.steps.append(last)
        last.detail.update(detail)

    async def _share(self, name: str, part: object, work: Callable[..., _T], *args: Any) -> _T:
        with self.step(name, "rerank" if name == "rerank" else "retrieve", args[0]) as step:
            result: _T = await self._asked(step, part, work, *args)
            step.hits = cast("Sequence[Hit]", result)
        return result

    async def _asked(self, step: TrialStep, part: object, work: Callable[..., Any], *args: Any) -> Any:
        """Return the result of a part. Its time is its own, without waiting for other trials."""
        shared = getattr(part, "shared", None)
        if shared is not None:
            result, milliseconds, *calls = await shared.ask(args)
            step.calls += [call for made in calls for call in made]
        elif inspect.iscoroutinefunction(work):
            return await work(*args)
        else:
            result, milliseconds = await on_local_thread(lambda: _clocked(work, args))
        step.took(milliseconds)
        return await result if inspect.isawaitable(result) else result

    def _found(self, hits: Sequence[Hit]) -> None:
        known = {hit.chunk.chunk_id for hit in self.retrieved}
        new = [hit for hit in hits if hit.chunk.chunk_id not in known]
        self.retrieved += [replace(hit, rank=len(self.retrieved) + n) for n, hit in enumerate(new, 1)]

    def _every_call(self) -> list[Call]:
        return [call for step in self.steps for call in step.calls]

    def _stages(self) -> Iterator[Stage]:
        yield from (step.told() for step in self.steps)


def _clocked(work: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, float]:
    started = perf_counter()
    return work(*args), (perf_counter() - started) * 1000
