"""A crew of workers: it hands out jobs, replaces dead workers, and yields the results in the order of the jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any, Protocol

from rag_harness.errors import CriticalError, RagHarnessError
from rag_harness.files.log import log

MOST_DEATHS = 3
"""Workers that may die during the same job. After that, the job counts as the reason."""
EACH = 2
"""Jobs of a worker: one in work, and one that waits, so that the worker is never idle."""
AHEAD = 2
"""Jobs per place that may be handed out before the oldest is done, so that a slow job does not stop the others."""


class LostError(RagHarnessError):
    """The process of a worker, or its node, has died."""


class Hand(Protocol):
    """A worker in any place. A call raises ``LostError`` if the worker has died, else the worker's own error."""

    name: str

    def call(self, method: str, *given: object) -> object:
        """Call a method of the worker's ``BulkWorker`` and return the result."""
        ...


ReplaceHand = Callable[[Hand], "Hand | None"]
"""Starts a worker in place of a dead one; None where no worker can be started."""


class Crew:
    """Workers, used from several threads.

    Args:
        hands: open workers.
        replace: starts a new worker.
        each: jobs that one worker has at once.
    """

    def __init__(self, hands: Sequence[Hand], replace: ReplaceHand = lambda _: None, each: int = EACH) -> None:
        self._replace, self._lock = replace, Lock()
        self._successors: dict[Hand, Hand | None] = {}
        self._places = self._live = len(hands) * each
        self._free: SimpleQueue[Hand | None] = SimpleQueue()
        for hand in [*hands] * each:
            self._free.put(hand)

    @property
    def lost(self) -> int:
        """Number of workers that have died."""
        return len(self._successors)

    def ordered(self, method: str, jobs: Iterable[Sequence[object]]) -> Iterator[Any]:
        """Call ``method`` of some worker with the arguments of each job; yield the results in the order of ``jobs``.

        The next job is taken from ``jobs`` only when there is room, so memory holds only a few.
        """
        given_up = Event()
        if self._places == 1:
            # One worker needs no threads. After Ctrl-C, a thread would first finish its window.
            yield from (self._do(method, given, given_up) for given in jobs)
            return
        pool = ThreadPoolExecutor(max(1, self._places), thread_name_prefix="rag-bulk")
        waiting: deque[Future[object]] = deque()
        try:
            for given in jobs:
                waiting.append(pool.submit(self._do, method, given, given_up))
                if len(waiting) >= self._places * AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            given_up.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def _do(self, method: str, given: Sequence[object], given_up: Event) -> object:
        for _ in range(MOST_DEATHS):
            hand: Hand | None = self._taken()
            assert hand is not None
            try:
                return hand.call(method, *given)
            except LostError as error:
                if given_up.is_set():
                    raise  # the caller has stopped, and the workers were ended
                log.warning("Worker %s is gone: %s", hand.name, error)
                hand = self._successor(hand)
            finally:
                self._give_back(hand)
        raise CriticalError(
            f"{MOST_DEATHS} workers have died over the same documents: they may need more memory than a node has."
        )

    def _taken(self) -> Hand:
        while True:
            hand = self._free.get()
            if hand is None:
                self._free.put(None)  # for other waiting threads
                raise CriticalError("No worker is left, and none can be started. What is done is kept: run it again.")
            # The worker may have died since it was put there. That must not count against this job.
            alive = self._latest(hand)
            if alive is not None:
                return alive
            self._give_back(None)

    def _latest(self, hand: Hand) -> Hand | None:
        with self._lock:
            alive: Hand | None = hand
            while alive in self._successors:
                alive = self._successors[alive]
            return alive

    def _successor(self, hand: Hand) -> Hand | None:
        """Return the worker in place of a dead one. It is started once, also if several threads ask."""
        with self._lock:
            if hand not in self._successors:
                self._successors[hand] = self._replace(hand)
        return self._latest(hand)

    def _give_back(self, hand: Hand | None) -> None:
        """Free a place. Without a worker the place is gone; without any places the work ends."""
        with self._lock:
            self._live -= hand is None
            if hand is not None or not self._live:
                self._free.put(hand)
