"""Work that several rows want at once, done once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from rag_harness.work.deadline import paused

T = TypeVar("T")

_REMEMBERED = 4096
"""Results kept for a row that asks for the same later."""


class Shared(Generic[T]):
    """Results by key: who asks for what is under way waits for it, and who asks later has it at once.

    What fails is not remembered: the next who asks tries again. Work outlives who asked for it first, for others may
    wait for it; its own limits bound it.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._tasks: OrderedDict[Hashable, asyncio.Task[T]] = OrderedDict()

    async def get(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Return the result of ``work``, which is begun where nobody has asked for ``key`` yet."""
        known = self._tasks.get(key)
        return await asyncio.shield(self._begin(key, work)) if known is None else await followed(known)

    def _begin(self, key: Hashable, work: Callable[[], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        task = self._tasks[key] = asyncio.create_task(work())
        task.add_done_callback(lambda done: self._forget_failed(key, done))
        if len(self._tasks) > self._remembered:
            self._tasks.popitem(last=False)
        return task

    def _forget_failed(self, key: Hashable, done: asyncio.Task[T]) -> None:
        # Asked for its exception even where nobody is left to hear it: asyncio would complain.
        if (done.cancelled() or done.exception()) and self._tasks.get(key) is done:
            del self._tasks[key]


async def followed(task: asyncio.Task[T]) -> T:
    """Return the result of work that another row began; waiting for it is not this row's own time."""
    if task.done():
        return task.result()
    with paused():
        return await asyncio.shield(task)
