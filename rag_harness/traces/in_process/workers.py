"""Threads and tasks that a trial has started, and that go on after it: they do the work of others in its context."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, TypeAlias

Worker: TypeAlias = "threading.Thread | asyncio.Task[Any]"
_FOREIGN = ("anyio", "rag_harness")
"""Packages whose threads take up the context of each piece of work."""


def worker_here() -> Worker | None:
    """Return the task or the thread that runs; None for one that takes up the context of each piece of work."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        return task
    thread = threading.current_thread()
    is_foreign = type(thread).__module__.partition(".")[0] in _FOREIGN or thread.name.startswith("rag-")
    return None if is_foreign or thread is threading.main_thread() else thread


def _is_of_pool(thread: threading.Thread) -> bool:
    """Return whether a thread is one of ThreadPoolExecutor's, or was not started by Python at all."""
    from concurrent.futures import thread as pools

    # Whoever hands work to a pool hands over its context, or loses it, which is seen. There is no public way to ask.
    return thread in getattr(pools, "_threads_queues", ()) or type(thread).__name__ == "_DummyThread"


def workers_under_way() -> set[Worker]:
    """Return all threads, and the tasks of the loop that runs."""
    found: set[Worker] = set(threading.enumerate())
    try:
        return found | asyncio.all_tasks()
    except RuntimeError:
        return found


def goes_on(worker: Worker) -> bool:
    """Return whether a thread or a task has not ended. Threads of pools do not count: they keep no context."""
    if isinstance(worker, threading.Thread):
        # Asked late, for a pool notes its threads after it has started them.
        return worker.is_alive() and not _is_of_pool(worker)
    return not worker.done()


def name_of(worker: Worker) -> str:
    """Return how a thread or a task is called."""
    return f"Thread {worker.name!r}" if isinstance(worker, threading.Thread) else f"Task {worker.get_name()!r}"
