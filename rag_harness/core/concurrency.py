"""Concurrency: lazy values, time limits for work, threads, and event loops for synchronous work."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache, partial
from math import inf
from queue import SimpleQueue
from threading import RLock
from time import monotonic
from typing import Any, Generic, TypeVar

from rag_harness.core.errors import DeadlineError

T_co = TypeVar("T_co", covariant=True)
IMPORTING = RLock()
"""Lock around the import of a large package. The openai SDK and transformers import themselves in circles. Without the
lock, two threads in such a circle can see half-made modules: Python allows that rather than a deadlock."""


@cache
def begin_ahead(name: str, work: Callable[..., object], *args: str) -> None:
    """Begin work in a thread of this name, once in this process, so that nobody waits for it later."""
    threading.Thread(target=work, args=args, name=name, daemon=True).start()


class Lazy(Generic[T_co]):
    """A value that is made on first use. So a run that only resumes builds no index.

    Args:
        make: makes the value. If it raises, the caller gets the error, and the next call of ``get`` tries again.
    """

    def __init__(self, make: Callable[[], T_co]) -> None:
        self._make = make
        self._values: list[T_co] = []
        self._lock = RLock()

    def get(self) -> T_co:
        """Return the value; the first call makes it."""
        if not self._values:
            with self._lock:
                if not self._values:
                    self._values.append(self._make())
        return self._values[0]

    def forget(self) -> None:
        """Drop the value. The next call computes it again."""
        self._values.clear()

    @property
    def made(self) -> T_co | None:
        """The value, or None where it was not used yet."""
        return self._values[0] if self._values else None


# A contextvar holds the deadlines in force. So code that makes work wait (caps, the limiter, the budget) stops all
# their clocks with ``with paused(): ...`` and need not know them.

_T = TypeVar("_T")

_WIND_UP = 1.0
"""Seconds that cancelled work gets to finish."""
_SHORTEST_LOOK = 0.02
"""Seconds between checks of a stopped clock with almost no time left."""
_counting = threading.Lock()
"""Is held while pauses are counted."""


class Deadline:
    """A time limit of ``seconds``, waiting not included. ``message`` is the error's text when the time is over."""

    def __init__(self, seconds: float, message: str = "", clock: Callable[[], float] = monotonic) -> None:
        self.seconds: float = seconds
        self._clock = clock
        self._message = message or f"no answer within {seconds:g} s"
        self._started = clock()
        self._waited, self._pauses, self._paused_at = 0.0, 0, 0.0
        self._outer = _innermost.get()

    @property
    def waited(self) -> float:
        """Seconds during which the clock was stopped."""
        return self._waited + (self._clock() - self._paused_at if self._pauses else 0.0)

    @property
    def left(self) -> float:
        """Seconds that are left; negative once it is over."""
        return self.seconds - (self._clock() - self._started - self.waited)

    def pause(self) -> None:
        """Stop the clock. Pauses can be nested, and are of any thread."""
        with _counting:
            if not self._pauses:
                self._paused_at = self._clock()
            self._pauses += 1

    def resume(self) -> None:
        """Start the clock again."""
        with _counting:
            self._pauses -= 1
            if not self._pauses:
                self._waited += self._clock() - self._paused_at

    async def bound(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Run ``work`` and return its result; cancel it when the time is over.

        Raises:
            DeadlineError: the time is over. Its cause is the cancellation, whose traceback shows where the work was.
        """
        woken, token = asyncio.Event(), _innermost.set(self)
        try:
            task = asyncio.ensure_future(_waking(work, woken))
        finally:
            _innermost.reset(token)
        task.add_done_callback(partial(_close, work, woken))
        try:
            while not task.done() and self.left > 0:
                await _wait(woken, max(self.left, _SHORTEST_LOOK))
        except asyncio.CancelledError:
            await _cancel(task)
            raise
        return task.result() if task.done() else await self._end(task)

    async def _end(self, task: asyncio.Task[_T]) -> _T:
        await _cancel(task)
        try:
            if task.done():
                return task.result()  # it finished at the last moment
        except (Exception, asyncio.CancelledError) as error:
            raise DeadlineError(self._message) from error
        raise DeadlineError(self._message)

    def chain(self) -> Iterator[Deadline]:
        """Yield this deadline and all deadlines around it."""
        each: Deadline | None = self
        while each is not None:
            yield each
            each = each._outer


_innermost: ContextVar[Deadline | None] = ContextVar("rag_deadline", default=None)


def is_in_force() -> bool:
    """Return whether the work here has a deadline, as each trial and each judgement has."""
    return _innermost.get() is not None


def time_left() -> float:
    """Return the seconds that the deadlines in force leave; infinite without one."""
    innermost = _innermost.get()
    return min(each.left for each in innermost.chain()) if innermost else inf


@contextmanager
def paused() -> Iterator[None]:
    """Stop the clocks of all deadlines in force."""
    innermost = _innermost.get()
    stopped = list(innermost.chain()) if innermost else []
    for each in stopped:
        each.pause()
    try:
        yield
    finally:
        for each in stopped:
            each.resume()


async def _waking(work: Coroutine[Any, Any, _T], woken: asyncio.Event) -> _T:
    """Run ``work`` and wake who waits for it, a turn of the loop sooner than ``asyncio.wait``: an answer is waiting."""
    try:
        return await work
    finally:
        woken.set()


def _close(work: Coroutine[Any, Any, Any], woken: asyncio.Event, _task: asyncio.Task[Any]) -> None:
    """End work whose task was cancelled before it began. No task has awaited it."""
    work.close()
    woken.set()


async def _wait(woken: asyncio.Event, seconds: float) -> None:
    timer = asyncio.get_running_loop().call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()
        woken.clear()


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    # Read the error: nobody else may do so, and asyncio logs an error that was never read.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=_WIND_UP)


# Threads for the synchronous work of trials, off the event loop. Under a debugger it runs in the tests' thread.


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
