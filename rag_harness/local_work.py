"""Where synchronous work of a trial runs: in a thread off the event loop; under a debugger right here."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")

inline: ContextVar[bool] = ContextVar("inline", default=False)
"""Whether a debugger should find the work in the thread of the tests."""

# One thread: in-memory indexes and models are not made for several, and a second would not make the cores faster.
_local = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rag-local")


async def on_local_thread(work: Callable[[], T]) -> T:
    """Run CPU-bound work: one piece at a time in a process."""
    if inline.get():
        return work()
    return await asyncio.get_running_loop().run_in_executor(_local, work)


async def in_a_thread(work: Callable[[], T]) -> T:
    """Run work that waits, a synchronous pipeline of the user's own say; as many at once as there are trials in flight.

    Each in a daemon thread: the end of the run waits for no work that hangs.
    """
    if inline.get():
        return work()
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def run() -> None:
        try:
            result = work()
        except BaseException as error:
            tell(future.set_exception, error)
        else:
            tell(future.set_result, result)

    def tell(settle: Callable[[Any], None], value: Any) -> None:
        # The loop may be closed by now, and nobody wait.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if future.done() else settle(value))

    threading.Thread(target=copy_context().run, args=(run,), name="rag-sync", daemon=True).start()
    return await future
