"""What a pipeline has done so far on one query: times, hits, and the stage that failed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import TypeVar

from rag_harness.types import Answer, Completion, Hit, PipelineOutput, Timings

T = TypeVar("T")

# One thread: in-memory indexes and models are not made for several, and a second would not make the cores faster.
_local_work = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rag-local")


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
        except Exception as error:
            self.failed_stage = self.failed_stage or name
            error.rag_trace = self  # type: ignore[attr-defined]
            raise
        finally:
            self.milliseconds[name] = (perf_counter() - started) * 1000

    async def off_loop(self, name: str, work: Callable[..., T], *args: object) -> T:
        """Run CPU-bound ``work`` as a stage off the event loop, so that model calls go on; waiting is not timed."""

        def timed() -> T:
            with self.stage(name):
                return work(*args)

        return await asyncio.get_running_loop().run_in_executor(_local_work, timed)

    def keep_best(self, ranked: Sequence[Hit], k: int) -> None:
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
