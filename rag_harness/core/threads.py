"""Threads and event loops for synchronous work, off the loop of the trials."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache
from queue import SimpleQueue
from typing import Any, TypeVar

# Threads for the synchronous work of trials, off the event loop. Under a debugger it runs in the tests' thread.

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


# Event loops that outlive one evaluation: a client that was made once is asked on the same loop each time.
#
# A connection belongs to the loop that opened it. On another one it fails with "Event loop is closed".


@cache
def lasting_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of this process on which async pipelines are asked; it runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="rag-asked", daemon=True).start()
    return loop


async def awaited_on(loop: asyncio.AbstractEventLoop, work: Awaitable[_T], name: str) -> _T:
    """Return the result of ``work``, which is awaited on another loop; it is cancelled there if it is here.

    Raises:
        RuntimeError: it asked Python to exit, which would end the loop; ``name`` is what messages call it.
    """

    async def whole() -> _T:
        try:
            return await work
        except SystemExit as error:
            raise RuntimeError(f"{name} asked Python to exit, with {error.code!r}") from error

    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(whole(), loop))


class _IdleLoops:
    """Loops for synchronous code that asks for one: ``asyncio.get_event_loop().run_until_complete(…)``."""

    def __init__(self) -> None:
        self._idle: list[asyncio.AbstractEventLoop] = []
        atexit.register(self.close)

    def take(self) -> asyncio.AbstractEventLoop:
        """Return the loop that was given back last, where clients of earlier calls are at home; else a new one."""
        while self._idle:
            loop = self._idle.pop()
            if not loop.is_closed():
                return loop
        return asyncio.new_event_loop()

    def give_back(self, loop: asyncio.AbstractEventLoop) -> None:
        """Store a loop for the next call."""
        if not loop.is_closed():
            self._idle.append(loop)

    def close(self) -> None:
        """Close all stored event loops."""
        while self._idle:
            self._idle.pop().close()


_loops = _IdleLoops()


@contextmanager
def loop_of_this_thread() -> Iterator[None]:
    """Give this thread an event loop in the block, as the main thread of a script has one."""
    if threading.current_thread() is threading.main_thread():
        yield  # under a debugger: the loop is the user's own affair
        return
    loop = _loops.take()
    asyncio.set_event_loop(loop)
    try:
        yield
    finally:
        asyncio.set_event_loop(None)
        _loops.give_back(loop)
