"""The one thread of a server that takes documents in, one at a time; a limited number may wait."""

from __future__ import annotations

import os
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import Any, TypeVar

from rag_harness.dataset.ingest.isolated import end_all
from rag_harness.service.problems import ProblemError

_T = TypeVar("_T")
MOST_WAITING = 32
"""How many documents may wait, of all collections. Above it, each collection may still have one."""
MOST_OF_ONE = 16
"""How many documents of one collection may wait, so that others have room."""
_NICE = 19
"""Lowers the thread's priority, so that questions go first on a busy processor. Only Linux can do so by thread.

A document still comes in while all cores answer, but slowly: docs/dev/results/service.md has both sides.
"""
_LOOKS_EVERY = 0.1
"""How often a wait for models looks whether the server is being stopped, in seconds."""
_Job = tuple[Callable[[], Any], "Future[Any]"]


class IngestThread:
    """Does the waiting work, one document of each collection in turn. It starts with the first work.

    New work waits for at most one document of each other collection, however many of those wait.
    """

    def __init__(self, most: int = MOST_WAITING, of_one: int = MOST_OF_ONE) -> None:
        self._most, self._of_one = most, of_one
        self._waiting: OrderedDict[int, deque[_Job]] = OrderedDict()
        self._at_work: int | None = None
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._ends = self._hurries = False

    def submit(self, collection: int, work: Callable[[], _T]) -> Future[_T]:
        """Queue ``work`` for a collection.

        Raises:
            ProblemError: too much is waiting.
        """
        future: Future[_T] = Future()
        with self._changed:
            if self._ends:
                raise _stopped()
            own = len(self._waiting.get(collection, ())) + (collection == self._at_work)
            if own >= self._of_one:
                raise _busy(429, "Your collection has too many documents waiting to be taken in")
            if own and sum(map(len, self._waiting.values())) >= self._most:
                raise _busy(503, "Too many documents are waiting to be taken in")
            self._waiting.setdefault(collection, deque()).append((work, future))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rag-service-ingest", daemon=True)
                self._thread.start()
            self._changed.notify()
        return future

    def check(self) -> None:
        """Check between two steps of a document that it may go on.

        Raises:
            ProblemError: the server is being stopped.
        """
        if self._hurries:
            raise _stopped()

    def result(self, calls: Future[_T]) -> _T:
        """Wait for calls of models that a document needs, and return their result.

        Raises:
            ProblemError: the server is being stopped, and the calls are given up.
        """
        while not wait([calls], _LOOKS_EVERY).done:
            try:
                self.check()
            except ProblemError:
                calls.cancel()
                raise
        return calls.result()

    def close(self, seconds: float = 1.0) -> bool:
        """End the waiting work and the current work; return whether all ended within twice ``seconds``.

        The current document has ``seconds`` to finish. Then the process that reads or cuts it is killed, and the work
        ends after its current step.
        """
        with self._changed:
            self._ends = True
            waiting = [future for jobs in self._waiting.values() for _, future in jobs]
            self._waiting.clear()
            self._changed.notify()
        for future in waiting:
            future.cancel()
        if self._thread is None:
            return True
        self._thread.join(seconds)
        if self._thread.is_alive():
            self._hurries = True
            end_all()
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        while (job := self._next()) is not None:
            work, future = job
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)

    def _next(self) -> _Job | None:
        with self._changed:
            self._at_work = None
            while not self._waiting:
                if self._ends:
                    return None
                self._changed.wait()
            self._at_work, jobs = self._waiting.popitem(last=False)
            job = jobs.popleft()
            if jobs:  # after all others
                self._waiting[self._at_work] = jobs
            return job


def _stopped() -> ProblemError:
    return ProblemError(503, "server_stops", "This server is being stopped. Send it again later.")


def _busy(status: int, what: str) -> ProblemError:
    return ProblemError(status, "ingest_busy", f"{what}. Send it again in 10 s.", headers={"Retry-After": "10"})
