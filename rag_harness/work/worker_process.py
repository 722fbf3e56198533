"""A process beside this one for work that is pure, long and small to send: another core does it, and this one goes on.

A server starts it (``worker``); a test run has none, and does the same work in its thread. The work is a function of a
module and its arguments: both are pickled. If the process dies, all work that it had fails, and the next work starts
another, up to MOST_STARTS of them; then the work is done in a thread again.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from time import perf_counter
from typing import Any, TypeVar

from rag_harness.errors import RagHarnessError
from rag_harness.work.processors import usable_processors

_T = TypeVar("_T")
MOST_STARTS = 5
"""How often the process is started. What dies more often is not helped by another start."""


class WorkerProcess:
    """One process, started with the first work, and again after it died."""

    def __init__(self) -> None:
        self.started: int = 0
        self._pool: ProcessPoolExecutor | None = None

    @property
    def is_given_up(self) -> bool:
        """Whether it has died too often."""
        return self._pool is None and self.started >= MOST_STARTS

    async def run(self, work: Callable[..., _T], *args: object) -> tuple[_T, float]:
        """Return what ``work`` returns, and its milliseconds there. Call it from one event loop.

        Raises:
            RagHarnessError: the process died. Any other error is the work's own.
        """
        pool = self._pool or self._start()
        try:
            return await asyncio.wrap_future(pool.submit(_timed, work, args))
        except BrokenProcessPool as error:
            if self._pool is pool:
                self._pool = None
                pool.shutdown(wait=False)
            of = f"start {self.started} of {MOST_STARTS}"
            raise RagHarnessError(f"The worker process died while it worked on this ({of}). Ask again.") from error

    def close(self) -> None:
        """Drop the work that waits, and end the process after its current work."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _start(self) -> ProcessPoolExecutor:
        self.started += 1
        # Spawned: a fork of a process with threads may inherit a lock that nobody releases.
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _begin)
        return self._pool


_workers: list[WorkerProcess] = []


def worker() -> WorkerProcess | None:
    """Return the process for work, if this one has one that lives."""
    return next((each for each in _workers if not each.is_given_up), None)


@contextmanager
def worker_beside() -> Iterator[None]:
    """Have a worker process while the block runs. With one core there is none: it would take from this process."""
    if usable_processors() > 1:
        _workers.append(WorkerProcess())
    try:
        yield
    finally:
        while _workers:
            _workers.pop().close()


def _timed(work: Callable[..., _T], args: tuple[object, ...]) -> tuple[_T, float]:
    started = perf_counter()
    result = work(*args)
    return result, (perf_counter() - started) * 1000


def _begin() -> None:
    """Prepare the process: Ctrl-C is for its parent alone, and it does not outlive that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(0)
