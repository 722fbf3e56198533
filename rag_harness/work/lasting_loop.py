"""Event loops that outlive one evaluation: a client that was made once is asked on the same loop each time.

A connection belongs to the loop that opened it. On another one it fails with "Event loop is closed".
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

_T = TypeVar("_T")


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
        """Keep a loop for the next call."""
        if not loop.is_closed():
            self._idle.append(loop)

    def close(self) -> None:
        """Close all that are kept."""
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
