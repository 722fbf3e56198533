"""The trace of an agent: each search, each call of a tool and each call of a model is a step of its own."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from time import perf_counter
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from rag_harness.pipelines.given_searches import given_to
from rag_harness.pipelines.trace import Trace
from rag_harness.pipelines.trial_step import TrialStep
from rag_harness.types import Call, Hit, Stage, StepKind
from rag_harness.work.local_work import in_a_thread, on_local_thread

if TYPE_CHECKING:
    from rag_harness.protocols import Reranker, Retriever

_T = TypeVar("_T")
SearchFunction: TypeAlias = Callable[[str, int], "Sequence[Hit] | Awaitable[Sequence[Hit]]"]
"""Query and number of hits -> the hits, best first. It may be ``async def`` or ``def``."""
_under_way: ContextVar[tuple[StepTrace, TrialStep] | None] = ContextVar("under_way", default=None)
"""The step that runs, with its trace."""


@dataclass
class StepTrace(Trace):
    """The record of a trial of an agent, step by step. Steps may run at once.

    ``retrieved`` is the union of what was found, in the order in which it was found. ``context`` is what the model is
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
        """Time a step of any kind. An error that leaves it stands in the step, and gets this trace."""
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
        """Time a step that is told by its name alone."""
        with self.step(name):
            yield

    async def search(self, retriever: Retriever | SearchFunction, query: str, k: int, **how: Any) -> list[Hit]:
        """Search as a step, and return at most ``k`` hits, best first. A lookup of another trial is reused.

        Args:
            retriever: what is searched, or a function that searches.
            query: the text that is searched for.
            k: number of hits.
            how: what else decides what is found, for the row: ``pages=[…]``.
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
        """Call a tool as a step with its name and its arguments, and return what it returns.

        ``work`` may be ``async def`` or ``def``. What is no coroutine runs in a thread of its own.
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
