"""Jobs -> workers, a few each at once; those of a worker that died -> another; what comes of them, in their order."""

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
"""Workers that may die while a job is under way before it is taken for the reason."""
EACH = 2
"""Jobs that a worker has: one that it does, and one that waits, so that it has something to do at once."""
AHEAD = 2
"""Jobs for each of these that may be done before an earlier one is: a slow one holds up no others at first."""


class LostError(RagHarnessError):
    """The process of a worker, or its node, is gone."""


class Hand(Protocol):
    """A worker, wherever it is. A call raises ``LostError`` where it is gone, else what the worker raised."""

    name: str

    def call(self, method: str, *given: object) -> object:
        """Return what a method of its ``BulkWorker`` returns."""
        ...


Replace = Callable[[Hand], "Hand | None"]
"""Starts a worker in the place of one that died; None where there is nowhere to start it."""


class Crew:
    """Workers, used from several threads.

    Args:
        hands: workers that are open.
        replace: starts another.
        each: jobs that one has at once.
    """

    def __init__(self, hands: Sequence[Hand], replace: Replace = lambda _: None, each: int = EACH) -> None:
        self._replace, self._lock = replace, Lock()
        self._successors: dict[Hand, Hand | None] = {}
        self._places = self._live = len(hands) * each
        self._free: SimpleQueue[Hand | None] = SimpleQueue()
        for hand in [*hands] * each:
            self._free.put(hand)

    @property
    def lost(self) -> int:
        """Workers that died."""
        return len(self._successors)

    def ordered(self, method: str, jobs: Iterable[Sequence[object]]) -> Iterator[Any]:
        """Yield what ``method`` of some worker returns for the arguments of each job, in the order of ``jobs``.

        The next job is only asked for when there is room: memory holds so many, however many there are.
        """
        given_up = Event()
        if self._places == 1:
            # This process alone: after Ctrl-C it would wait until a thread is done with its window.
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
                    raise  # whoever asked has left, and workers were ended
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
                self._free.put(None)  # for whoever waits in another thread
                raise CriticalError("No worker is left, and none can be started. What is done is kept: run it again.")
            # Known to be dead since it was put there: not to be held against this job.
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
        """Return who works in the place of a dead worker; started once, however many threads ask."""
        with self._lock:
            if hand not in self._successors:
                self._successors[hand] = self._replace(hand)
        return self._latest(hand)

    def _give_back(self, hand: Hand | None) -> None:
        """Let others have this place; without a worker it is none, and without any the work is over."""
        with self._lock:
            self._live -= hand is None
            if hand is not None or not self._live:
                self._free.put(hand)
