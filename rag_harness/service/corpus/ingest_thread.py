"""The one thread that takes documents in: one at a time a server, and no more waiting than can be kept track of."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, Full, Queue
from typing import Any, TypeVar

from rag_harness.service.problems import ProblemError

T = TypeVar("T")
MOST_WAITING = 32
"""Documents, of all collections."""
MOST_OF_ONE = 16
"""Of one collection: it leaves room for others."""
_NICE = 5
"""Questions go first where there is not enough of the processor for both; Linux knows it by thread."""


class IngestThread:
    """Works off a bounded queue; started with the first work."""

    def __init__(self, most: int = MOST_WAITING, of_one: int = MOST_OF_ONE) -> None:
        self._queue: Queue[tuple[int, Callable[[], Any], Future[Any]] | None] = Queue(most)
        self._of_one, self._waiting = of_one, dict[int, int]()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._ends = False

    def submit(self, collection: int, work: Callable[[], T]) -> Future[T]:
        """Queue ``work`` for a collection.

        Raises:
            ProblemError: too much is waiting.
        """
        future: Future[T] = Future()
        with self._lock:
            if self._ends:
                raise ProblemError(503, "server_stops", "This server is being stopped. Send it again later.")
            if self._waiting.get(collection, 0) >= self._of_one:
                raise _busy(429, "Your collection has too many documents waiting to be taken in")
            try:
                self._queue.put_nowait((collection, work, future))
            except Full:
                raise _busy(503, "Too many documents are waiting to be taken in") from None
            self._waiting[collection] = self._waiting.get(collection, 0) + 1
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rag-service-ingest", daemon=True)
                self._thread.start()
        return future

    def close(self) -> None:
        """Finish what is being worked on, and nothing that waits."""
        with self._lock:
            self._ends = True
        with suppress(Empty):
            while (waiting := self._queue.get_nowait()) is not None:
                waiting[2].cancel()
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (job := self._queue.get()) is not None:
            collection, work, future = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
            with self._lock:
                self._waiting[collection] -= 1


def _busy(status: int, what: str) -> ProblemError:
    return ProblemError(status, "ingest_busy", f"{what}. Send it again in 10 s.", headers={"Retry-After": "10"})
