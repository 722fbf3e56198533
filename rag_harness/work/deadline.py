"""Time that work may take, on a clock that stands still while the work waits for a turn of its own run's making.

A contextvar knows the deadlines in force, so that whoever makes work wait (caps, the limiter, the budget) need not know
whose time it is: ``with paused(): ...``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import Any, TypeVar

from rag_harness.errors import DeadlineError

T = TypeVar("T")

_WIND_UP = 1.0
"""Seconds that work which is cancelled gets to leave."""
_SHORTEST_LOOK = 0.02
"""Seconds between looks at a clock that stands still with almost nothing left."""


class Deadline:
    """A stopwatch of ``seconds``, and of what was waited meanwhile; ``message`` is what is said when they are over."""

    def __init__(self, seconds: float, message: str = "", clock: Callable[[], float] = monotonic) -> None:
        self.seconds, self._clock = seconds, clock
        self._message = message or f"no answer within {seconds:g} s"
        self._started = clock()
        self._waited, self._pauses, self._paused_at = 0.0, 0, 0.0
        self._outer = _innermost.get()

    @property
    def waited(self) -> float:
        """Seconds in which the clock stood still."""
        return self._waited + (self._clock() - self._paused_at if self._pauses else 0.0)

    @property
    def left(self) -> float:
        """Seconds that are left; negative once it is over."""
        return self.seconds - (self._clock() - self._started - self.waited)

    def pause(self) -> None:
        """Stop the clock; pauses nest."""
        if not self._pauses:
            self._paused_at = self._clock()
        self._pauses += 1

    def resume(self) -> None:
        """Let the clock go on."""
        self._pauses -= 1
        if not self._pauses:
            self._waited += self._clock() - self._paused_at

    async def bound(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what ``work`` returns; when the time is over, cancel it.

        Raises:
            DeadlineError: the time is over; its cause is the cancellation, which knows where the work was.
        """
        token = _innermost.set(self)
        try:
            task = asyncio.ensure_future(work)
        finally:
            _innermost.reset(token)
        try:
            while not task.done() and self.left > 0:
                await asyncio.wait({task}, timeout=max(self.left, _SHORTEST_LOOK))
        except asyncio.CancelledError:
            await _cancel(task)
            raise
        return task.result() if task.done() else await self._end(task)

    async def _end(self, task: asyncio.Task[T]) -> T:
        await _cancel(task)
        try:
            if task.done():
                return task.result()  # it came back at the last moment
        except (Exception, asyncio.CancelledError) as error:
            raise DeadlineError(self._message) from error
        raise DeadlineError(self._message)

    def chain(self) -> Iterator[Deadline]:
        """Yield this deadline and those around it."""
        each: Deadline | None = self
        while each is not None:
            yield each
            each = each._outer


_innermost: ContextVar[Deadline | None] = ContextVar("rag_deadline", default=None)


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


async def _cancel(task: asyncio.Task[Any]) -> None:
    task.cancel()
    # Nobody may be left to ask what it failed with, and asyncio would complain.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait({task}, timeout=_WIND_UP)
