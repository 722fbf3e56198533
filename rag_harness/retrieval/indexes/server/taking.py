"""Acquiring of a lease: at once, after its holder returns it, or after its holder died."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from rag_harness.errors import CriticalError
from rag_harness.retrieval.indexes.server.lease import SILENCE, Clock, Lease, now_said, process_name, run_name
from rag_harness.retrieval.indexes.server.ledger import NEVER, CollectionLedger, Entry
from rag_harness.work import reporting

_POLL, _AGAIN = 2.0, 0.05
"""Seconds between two checks of a holder, and seconds after another process was faster."""


@dataclass(frozen=True)
class WantedChange:
    """A request for a lease.

    Attributes:
        collection: the name of the collection.
        total: number of points that it will have.
        wait: seconds to wait for another holder.
        holder: the process that wants the lease, by default this one.
    """

    collection: str
    total: int
    wait: float
    holder: str = field(default_factory=process_name)


def acquire(
    ledger: CollectionLedger,
    wanted: WantedChange,
    whole: Callable[[], bool],
    clock: Clock | None = None,
    beats: bool = True,
) -> Lease | None:
    """Return the lease of a collection; None where ``whole`` says that nothing is left to do.

    Raises:
        CriticalError: another run still holds the lease when the time is over; names it.
    """
    clock = clock or Clock()
    watch = _Watch(wanted, clock)
    while True:
        there = ledger.read(wanted.collection)
        if there is not None and not watch.is_free(there):
            watch.wait(there)
            continue
        watch.end()
        if whole():
            _close(ledger, there)
            return None
        entry = _entry(wanted, there)
        if ledger.write(entry, there.turn if there else NEVER):
            return Lease(ledger, entry, beats)
        clock.sleep(_AGAIN)


class _Watch:
    """Watches the holder of a lease, by its own clock. A holder without heartbeats counts as dead."""

    def __init__(self, wanted: WantedChange, clock: Clock) -> None:
        self._wanted, self._clock = wanted, clock
        self._began = self._since = clock.now()
        self._turn, self._said = NEVER, False

    def is_free(self, there: Entry) -> bool:
        """Return whether no other live process holds the lease."""
        if there.turn != self._turn:
            self._turn, self._since = there.turn, self._clock.now()
        silent = self._clock.now() - self._since
        return not there.changing or there.holder == self._wanted.holder or silent >= SILENCE

    def wait(self, there: Entry) -> None:
        """Wait a little, and report for whom."""
        limit = self._wanted.wait
        if self._clock.now() - self._began >= limit:
            raise CriticalError(
                f"Collection {there.collection} is being changed by another run ({there.who}, {there.done:,} of "
                f"{there.total:,} chunks, last heard of {there.heard}), and still is after {limit:.0f} s. Wait for "
                f"it, or raise rag_qdrant_cluster wait=."
            )
        reporting.report(f"waiting for {there.who}", there.done, max(there.total, there.done + 1), "chunks")
        self._said = True
        self._clock.sleep(min(_POLL, limit))

    def end(self) -> None:
        """Report the end of waiting."""
        if self._said:
            reporting.report("waiting", 1, 1)
        self._said = False


def _close(ledger: CollectionLedger, there: Entry | None) -> None:
    """Close the entry of a holder that died after its last point. Otherwise all others would wait for it."""
    if there is not None and there.changing:
        with suppress(Exception):  # a client that may only read cannot write the entry
            ledger.write(replace(there, turn=there.turn + 1, changing=False), there.turn)


def _entry(wanted: WantedChange, there: Entry | None) -> Entry:
    turn = there.turn + 1 if there else 0
    who = f"{socket.gethostname()}:{os.getpid()}"
    return Entry(wanted.collection, turn, wanted.holder, run_name(), who, True, 0, wanted.total, now_said())
