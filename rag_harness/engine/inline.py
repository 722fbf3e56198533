"""Runs a trial when its test asks for it, in the thread of the tests, so that a debugger stops in the pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Generic

from rag_harness.engine.loop import _R, _T, Job, Keep
from rag_harness.work.local_work import inline


class InlineLoop(Generic[_T]):
    """The engine of ``--rag-concurrency=1 --pdb``. It has the interface of ``BackgroundLoop``."""

    def __init__(self, keep: Keep[_T] | None = None) -> None:
        self._keep = keep
        self._jobs: dict[Hashable, Job[_T]] = {}
        self._after: dict[Hashable, Hashable] = {}
        self._results: dict[Hashable, _T] = {}
        self._loop = asyncio.new_event_loop()
        self.in_flight = 0

    def submit(
        self,
        key: Hashable,
        job: Job[_T],
        first: bool = False,  # noqa: ARG002 - nothing waits here
        after: Hashable = None,
    ) -> None:
        """Remember ``job`` under ``key``. The job ``after`` which it comes runs before it."""
        if key not in self._jobs:
            self._jobs[key], self._after[key] = job, after

    def result(self, key: Hashable) -> _T:
        """Run the job, once."""
        if key not in self._results:
            before = self._after[key]
            if before in self._jobs:
                self.result(before)
            self._results[key] = self._loop.run_until_complete(self._run(self._jobs[key]))
        return self._results[key]

    async def _run(self, job: Job[_T]) -> _T:
        inline.set(True)
        result = await job()
        if self._keep is not None:
            await self._keep(result)
        return result

    def run(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run ``work`` now, before the trial that needs it, and return its result."""
        return self._loop.run_until_complete(work)

    def forget(self, key: Hashable) -> None:
        """Drop a result that nobody will ask for again."""
        del self._results[key], self._jobs[key], self._after[key]

    def drop(self, key: Hashable) -> None:
        """Do nothing: no job waits here."""

    def stop(self) -> None:
        """Do nothing: a job runs only while somebody waits for it."""

    def close(self, *finally_: Callable[[], Awaitable[None]]) -> None:
        """Run ``finally_`` and end the loop."""

        async def last() -> None:
            for each in finally_:
                await each()

        self._loop.run_until_complete(last())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()
