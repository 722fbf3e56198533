"""Upload of points to a collection: several requests in flight, with retries, and without existing points."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from time import monotonic
from typing import Any

from rag_harness.files.log import log
from rag_harness.retrieval.indexes.server.connection import is_full, status_of
from rag_harness.retrieval.indexes.server.points import DIGEST, Points
from rag_harness.retrieval.indexes.server.server_options import ClusterOptions
from rag_harness.work import reporting

UPLOAD_TRIES, PAUSE, LONGEST_PAUSE = 5, 0.5, 30.0
"""Most tries of a request; seconds before the second try, doubled each time; the longest pause."""
WAITS_EACH = 8
"""One request in so many, and the last one, waits until its points are written. This keeps the server's queue short."""
_MAY_PASS = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""


@dataclass(frozen=True)
class Uploaded:
    """The result of an upload.

    Attributes:
        sent: number of points that were sent.
        kept: number of points that existed.
        seconds: its duration.
    """

    sent: int
    kept: int
    seconds: float

    def line(self) -> str:
        """Return the result as a line of text, with the rate."""
        rate = f", {self.sent / self.seconds:,.0f} a second" if self.sent and self.seconds else ""
        return f"{self.sent:,} points sent in {self.seconds:.1f} s{rate}; {self.kept:,} were there"


class Upload:
    """Fills one collection.

    Args:
        client: the server's client; ``options.parallel`` threads use it at once. In memory mode only the caller does.
        collection: the name of the collection.
        options: batch size, requests in flight.
        resumes: whether to ask for each batch which points exist with the same digest.
        pause: waits some seconds; by default the wait ends when the upload is given up.
    """

    def __init__(
        self,
        client: Any,
        collection: str,
        options: ClusterOptions,
        resumes: bool = False,
        pause: Callable[[float], Any] | None = None,
    ) -> None:
        self._client, self._collection, self._options = client, collection, options
        self._resumes, self._given_up = resumes, Event()
        self._pause = pause or self._given_up.wait

    def run(self, batches: Iterable[Points], total: int, heard: Callable[[int], None] = lambda _: None) -> Uploaded:
        """Send all batches and return the result. ``heard`` gets the number of points done, and may raise.

        The next batch is made when a request is done, so memory holds only the batches in flight.
        """

        def told(done: int) -> None:
            heard(done)
            reporting.report("uploading", min(done, total), total, "chunks")

        reporting.report("uploading", 0, total, "chunks")
        made = self.send(batches, told)
        log.info("Collection %s: %s", self._collection, made.line())
        return made

    def send(self, batches: Iterable[Points], heard: Callable[[int], None] = lambda _: None) -> Uploaded:
        """Send batches without reporting progress, for a worker that sends a part of all points."""
        began, sent, done = monotonic(), 0, 0
        for size, new in self._sent(batches):
            sent, done = sent + new, done + size
            heard(done)
        return Uploaded(sent, done - sent, monotonic() - began)

    def lacking(self, points: Points) -> Points:
        """Return the ``points`` that the server lacks with the same digest."""
        return points.but(self._again(lambda: self._there(points)))

    def _sent(self, batches: Iterable[Points]) -> Iterator[tuple[int, int]]:
        numbered = _with_last(batches)
        if self._options.parallel == 1:
            yield from (self._send(*each) for each in numbered)
            return
        pool = ThreadPoolExecutor(self._options.parallel, thread_name_prefix="rag-qdrant")
        in_flight: deque[Future[tuple[int, int]]] = deque()
        try:
            for each in numbered:
                if len(in_flight) == self._options.parallel or each[2]:
                    yield from _come_back(in_flight, all_of_them=each[2])
                in_flight.append(pool.submit(self._send, *each))
            yield from _come_back(in_flight, all_of_them=True)
        finally:
            self._given_up.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _send(self, number: int, points: Points, last: bool) -> tuple[int, int]:
        size = len(points)
        if self._resumes:
            points = self.lacking(points)
        if len(points):
            waits = last or number % WAITS_EACH == 0
            self._again(lambda: self._upsert(points, waits))
        return size, len(points)

    def _there(self, points: Points) -> dict[str, str]:
        found = self._client.retrieve(self._collection, list(points.ids), with_payload=[DIGEST], with_vectors=False)
        return {str(point.id): (point.payload or {}).get(DIGEST, "") for point in found}

    def _upsert(self, points: Points, waits: bool) -> None:
        from qdrant_client.models import Batch

        batch = Batch(
            ids=list(points.ids), vectors=points.vectors.tolist(), payloads=[dict(each) for each in points.payloads]
        )
        self._client.upsert(self._collection, batch, wait=waits)

    def _again(self, call: Callable[[], Any]) -> Any:
        """Make a call, and retry it after temporary errors. The server may say how long to wait."""
        for tried in range(1, UPLOAD_TRIES + 1):
            try:
                return call()
            except Exception as error:
                if tried == UPLOAD_TRIES or self._given_up.is_set() or not _may_pass(error):
                    raise
                pause = getattr(error, "retry_after_s", 0) or min(PAUSE * 2 ** (tried - 1), LONGEST_PAUSE)
                log.info("A batch for %s is sent again in %.1f s: %s", self._collection, pause, error)
                self._pause(pause)
        raise AssertionError("the last try returns or raises")


def _may_pass(error: Exception) -> bool:
    """Return whether a retry may succeed. It cannot if the server is full, or the request is wrong."""
    unanswered = status_of(error) is None and hasattr(error, "source")
    return unanswered or (status_of(error) in _MAY_PASS and not is_full(error))


def _with_last(batches: Iterable[Points]) -> Iterator[tuple[int, Points, bool]]:
    """Yield batches, each with its number and whether it is the last."""
    before: Points | None = None
    number = -1
    for number, batch in enumerate(batches):
        if before is not None:
            yield number - 1, before, False
        before = batch
    if before is not None:
        yield number, before, True


def _come_back(in_flight: deque[Future[tuple[int, int]]], all_of_them: bool) -> Iterator[tuple[int, int]]:
    while in_flight:
        yield in_flight.popleft().result()
        if not all_of_them:
            return
