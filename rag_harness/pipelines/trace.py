"""What a pipeline has done so far on one query: times, hits, and the stage that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.local_work import on_local_thread
from rag_harness.types import Answer, Completion, Hit, PipelineOutput, Timings

if TYPE_CHECKING:
    from rag_harness.protocols import Reranker, Retriever

T = TypeVar("T")


@dataclass
class Trace:
    """Filled in by a pipeline, stage by stage; a failure carries it, so a row shows how far its trial came."""

    retrieved: list[Hit] = field(default_factory=list)
    context: list[Hit] = field(default_factory=list)
    milliseconds: dict[str, float] = field(default_factory=dict)
    failed_stage: str = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage; an exception that leaves it knows the stage and this trace."""
        started = perf_counter()
        try:
            yield
        except (Exception, asyncio.CancelledError) as error:
            # A deadline ends a trial by cancelling it.
            self.failed_stage = self.failed_stage or name
            error.rag_trace = self  # type: ignore[union-attr]
            raise
        finally:
            self.milliseconds[name] = (perf_counter() - started) * 1000

    async def off_loop(self, name: str, work: Callable[..., T], *args: object) -> T:
        """Run CPU-bound ``work`` as a stage off the event loop, so that model calls go on; waiting is not timed."""

        def timed() -> T:
            with self.stage(name):
                return work(*args)

        return await on_local_thread(timed)

    async def retrieve(self, retriever: Retriever, query: str, k: int) -> None:
        """Run the stage ``retrieve``; what another trial has asked for is not looked up again."""
        self.retrieved = await self._share("retrieve", retriever, retriever.retrieve, query, k)

    async def rerank(self, reranker: Reranker, query: str, k: int) -> None:
        """Run the stage ``rerank`` over what was retrieved, and keep the best ``k`` as context."""
        ranked = await self._share("rerank", reranker, reranker.rerank, query, tuple(self.retrieved))
        self._keep_best(ranked, k)

    async def _share(self, name: str, part: object, work: Callable[..., T], *args: Any) -> T:
        shared = getattr(part, "shared", None)
        if shared is None:
            return await self.off_loop(name, work, *args)
        with self.stage(name):
            result: T
            result, milliseconds = await shared.ask(args)
        self.milliseconds[name] = milliseconds
        return result

    def _keep_best(self, ranked: Sequence[Hit], k: int) -> None:
        """Take the first ``k`` reranked hits as context; what was retrieved keeps its order and gains the scores."""
        by_id = {hit.chunk.chunk_id: hit for hit in ranked}
        self.context = list(ranked[:k])
        self.retrieved = [replace(by_id.get(hit.chunk.chunk_id, hit), rank=hit.rank) for hit in self.retrieved]

    def output(self, answer: Answer, completion: Completion | None = None) -> PipelineOutput:
        """Return what has been gathered, with the answer."""
        timings = self.timings(completion)
        if completion is None:
            return PipelineOutput(answer, tuple(self.retrieved), tuple(self.context), timings=timings)
        return PipelineOutput(
            answer,
            tuple(self.retrieved),
            tuple(self.context),
            completion.usage,
            timings,
            completion.model,
            completion.retries,
            completion.waited_ms,
            completion.recorded,
        )

    def timings(self, completion: Completion | None = None) -> Timings:
        """Return the times of the stages that ran."""
        return Timings(
            self.milliseconds.get("retrieve"),
            self.milliseconds.get("rerank"),
            completion.total_ms if completion else self.milliseconds.get("generate"),
            completion.ttft_ms if completion else None,
        )
