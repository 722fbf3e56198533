"""Time limits for work, whose clocks stop while the work waits for a limit of the run itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from rag_harness.core.errors import DeadlineError

# A contextvar holds the deadlines in force. So code that makes work wait (caps, the limiter, the budget) stops all
# their clocks with ``with paused(): ...`` and need not know them.

_T = TypeVar("_T")

_WIND_UP = 1.0
"""Seconds that cancelled work gets to finish."""
_SHORTEST_LOOK = 0.02
"""Seconds between checks of a stopped clock with almost no time left."""


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
        """Stop the clock. Pauses can be nested."""
        if not self._pauses:
            self._paused_at = self._clock()
        self._pauses += 1

    def resume(self) -> None:
        """Start the clock again."""
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
