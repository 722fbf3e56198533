"""Does work once that several rows want at the same time."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from rag_harness.work.deadline import paused

_T = TypeVar("_T")

_REMEMBERED = 4096
"""Number of results that are kept for later rows."""


class Shared(Generic[_T]):
    """Results by key. A row waits for work that is under way, and gets the kept result of finished work.

    Failed work is not kept: the next row tries again. Work goes on when the row that started it is cancelled, for
    others may wait for it; its own limits bound it.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._tasks: OrderedDict[Hashable, asyncio.Task[_T]] = OrderedDict()

    async def get(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """Return the result of ``work``. It is started only where no work for ``key`` is known."""
        known = self._tasks.get(key)
        return await asyncio.shield(self._begin(key, work)) if known is None else await followed(known)

    def _begin(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, _T]]) -> asyncio.Task[_T]:
        task = self._tasks[key] = asyncio.create_task(work())
        task.add_done_callback(lambda done: self._forget_failed(key, done))
        if len(self._tasks) > self._remembered:
            self._tasks.popitem(last=False)
        return task

    def _forget_failed(self, key: Hashable, done: asyncio.Task[_T]) -> None:
        # The exception is read even where no row waits any more: asyncio would complain.
        if (done.cancelled() or done.exception()) and self._tasks.get(key) is done:
            del self._tasks[key]


async def followed(task: asyncio.Task[_T]) -> _T:
    """Return the result of work that another row started. The waiting does not count as this row's time."""
    if task.done():
        return task.result()
    with paused():
        return await asyncio.shield(task)
