"""Threads for the synchronous work of trials, off the event loop. Under a debugger it runs in the tests' thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from queue import SimpleQueue
from typing import Any, TypeVar

_T = TypeVar("_T")

inline: ContextVar[bool] = ContextVar("inline", default=False)
"""Whether work runs in the thread of the tests, where a debugger can stop in it."""

_HARNESS = ("rag-trials", "rag-asked", "rag-local", "rag-sync", "rag-threads", "rag-journal")
_ours: ContextVar[bool] = ContextVar("ours", default=False)


@contextmanager
def harness_at_work() -> Iterator[None]:
    """Mark the block as work of the harness, in the thread of the tests."""
    token = _ours.set(True)
    try:
        yield
    finally:
        _ours.reset(token)


def is_harness_at_work() -> bool:
    """Return whether a trial or the harness is running, and not a test of the user's."""
    name = threading.current_thread().name
    return _ours.get() or inline.get() or name in _HARNESS or name.rpartition("_")[0] in _HARNESS


class _LocalThread:
    """One daemon thread for CPU-bound work. In-memory indexes and models are not thread-safe; threads add no speed.

    An executor is not used: at exit the interpreter waits for its threads, even for work that hangs.
    """

    def __init__(self) -> None:
        self._work: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._start = threading.Lock()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[[], None]) -> None:
        """Queue ``work``."""
        with self._start:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rag-local", daemon=True)
                self._thread.start()
        self._work.put(work)

    def _run(self) -> None:
        while True:
            self._work.get()()


_local = _LocalThread()


async def on_local_thread(work: Callable[[], _T]) -> _T:
    """Run CPU-bound work. A process runs one piece at a time."""
    return work() if inline.get() else await _elsewhere(work, _local.submit)


async def in_a_thread(work: Callable[[], _T]) -> _T:
    """Run blocking work, such as a user's synchronous pipeline. It runs once per trial in flight at the same time.

    Each piece has its own daemon thread, so the end of the run never waits for work that hangs.
    """
    return work() if inline.get() else await _elsewhere(work, _start_thread)


def _start_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=copy_context().run, args=(work,), name="rag-sync", daemon=True).start()


async def _elsewhere(work: Callable[[], _T], start: Callable[[Callable[[], None]], None]) -> _T:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            tell(future.set_exception, error)
        else:
            tell(future.set_result, result)

    def tell(settle: Callable[[Any], None], value: Any) -> None:
        # The loop may be closed by now; then nobody waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    start(run)
    return await future
