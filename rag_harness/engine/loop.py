"""Runs trials on one background event loop, ahead of the tests that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any, Generic, TypeVar

from rag_harness.engine.behind import Behind
from rag_harness.errors import CriticalError
from rag_harness.files.log import log

_T = TypeVar("_T")
_R = TypeVar("_R")
Job = Callable[[], Coroutine[Any, Any, _T]]
Keep = Callable[[_T], Awaitable[None]]

STOP_WAIT = 5.0
"""Seconds that calls under way get to finish when a run is stopped."""


class BackgroundLoop(Generic[_T]):
    """Jobs by key, run in the order of submission, at most ``concurrency`` at once.

    All methods but ``submit`` are called from the thread of the tests.

    Args:
        concurrency: jobs in flight at once.
        keep: writes a result to the disk before it is returned. The next job starts meanwhile.
    """

    def __init__(self, concurrency: int, keep: Keep[_T] | None = None) -> None:
        self._concurrency, self._keep = concurrency, keep
        self._waiting: OrderedDict[Hashable, Job[_T]] = OrderedDict()
        self._behind = Behind[_T]()
        self._futures: dict[Hashable, Future[_T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.in_flight: int = 0
        self._lock = threading.Lock()
        self._stopping = False
        self._broken: BaseException | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="rag-trials", daemon=True)
        self._thread.start()

    def submit(self, key: Hashable, job: Job[_T], first: bool = False, after: Hashable = None) -> None:
        """Queue ``job`` first or last, unless ``key`` is known. After ``close`` the job counts as cancelled.

        A running job may submit another. A job that comes ``after`` another is queued, first, when the result of that
        one is on the disk, or when it has none. ``after`` was submitted before; a key that is forgotten counts as done.
        """
        with self._lock:
            if key in self._futures:
                return
            self._futures[key] = Future()
            if self._stopping:
                self._give_up(key)
                return
            if after in self._futures and not self._futures[after].done():
                self._behind.put(key, job, after)
                return
            self._waiting[key] = job
            if first:
                self._waiting.move_to_end(key, last=False)
            is_only = len(self._waiting) == 1
        if is_only:
            self._loop.call_soon_threadsafe(self._start_jobs)

    def result(self, key: Hashable) -> _T:
        """Wait for a submitted job. If it has not started, it is the next to start, behind what it comes after.

        Raises:
            CancelledError: the loop was closed before the job was done. Any other error is the job's own.
        """
        future = self._futures[key]
        if not future.done():
            self._hurry(key)
        return future.result()

    def _hurry(self, key: Hashable) -> None:
        with self._lock:
            first = self._behind.head(key)
            if first in self._waiting:
                self._waiting.move_to_end(first, last=False)

    def run(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run ``work`` beside the jobs and return its result. It is no job. Call it from another thread."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def forget(self, key: Hashable) -> None:
        """Drop a result that nobody will ask for again."""
        del self._futures[key]

    def drop(self, key: Hashable) -> None:
        """Do not start a waiting job, nor those that come after it. A running job goes on."""
        with self._lock:
            is_waiting = self._waiting.pop(key, None) is not None or self._behind.has(key)
            for dropped in [key, *self._behind.take_all(key)] if is_waiting else ():
                self._futures[dropped].cancel()

    def stop(self) -> None:
        """Start no more jobs."""
        with self._lock:
            self._stopping = True
            for key in (*self._waiting, *self._behind.clear()):
                self._give_up(key)
            self._waiting.clear()

    def _give_up(self, key: Hashable) -> None:
        if self._broken is not None:
            self._futures[key].set_exception(self._broken)
        else:
            self._futures[key].cancel()

    def close(self, *finally_: Callable[[], Awaitable[None]]) -> None:
        """Drop waiting jobs, give running ones a few seconds, run ``finally_`` and end the loop."""
        self.stop()
        if self._thread.is_alive():
            try:
                asyncio.run_coroutine_threadsafe(self._wind_down(finally_), self._loop).result(4 * STOP_WAIT)
            except FutureTimeoutError:
                log.error("The event loop does not answer: a pipeline's async answer blocks it. It is left behind.")
            finally:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._thread.join(STOP_WAIT)
        for future in self._futures.values():
            future.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        # asyncio's own pool has only 4 threads more than there are cores: a pipeline's to_thread calls would wait.
        threads = ThreadPoolExecutor(self._concurrency, "rag-threads")
        self._loop.set_default_executor(threads)
        self._loop.run_forever()
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        threads.shutdown(wait=False, cancel_futures=True)
        self._loop.close()

    def _start_jobs(self) -> None:
        while self.in_flight < self._concurrency:
            with self._lock:
                if not self._waiting:
                    return
                key, job = self._waiting.popitem(last=False)
            self.in_flight += 1
            task = self._loop.create_task(self._finish(key, job))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _finish(self, key: Hashable, job: Job[_T]) -> None:
        future = self._futures[key]
        try:
            result = await self._in_flight(job)
            if self._keep is not None:
                await self._kept(result)
            future.set_result(result)
        except asyncio.CancelledError:
            future.cancel()
        except BaseException as error:
            future.set_exception(error)
        self._let_follow(key)

    def _let_follow(self, key: Hashable) -> None:
        with self._lock:
            for following, job in self._behind.take(key):
                self._waiting[following] = job
                self._waiting.move_to_end(following, last=False)
        self._start_jobs()

    async def _kept(self, result: _T) -> None:
        """Write a result to the disk. Where that fails, start no more jobs: their results would be lost as well."""
        assert self._keep is not None
        try:
            await self._keep(result)
        except CriticalError as error:
            self._broken = error
            self.stop()
            raise

    async def _in_flight(self, job: Job[_T]) -> _T:
        try:
            return await job()
        finally:
            self.in_flight -= 1
            self._start_jobs()

    async def _wind_down(self, finally_: tuple[Callable[[], Awaitable[None]], ...]) -> None:
        if self._tasks:
            await asyncio.wait(set(self._tasks), timeout=STOP_WAIT)
        await _cancel(self._tasks)
        for each in finally_:
            try:
                await each()
            except Exception as error:
                log.warning("Closing %s failed", each, exc_info=error)
        # Tasks that pipelines and clients started and did not end.
        await _cancel(asyncio.all_tasks() - {asyncio.current_task()})


async def _cancel(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    late = [task for task in tasks if task is not None]
    for task in late:
        task.cancel()
    if late:
        await asyncio.wait(late, timeout=STOP_WAIT)
