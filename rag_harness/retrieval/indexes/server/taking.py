"""How a process comes by the right to change a collection: at once, after who has it, or after who died with it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from rag_harness.errors import CriticalError
from rag_harness.retrieval.indexes.server.lease import SILENCE, Clock, Lease, now_said, process_name, run_name
from rag_harness.retrieval.indexes.server.ledger import NEVER, Entry, Ledger
from rag_harness.work import reporting

_POLL, _AGAIN = 2.0, 0.05
"""Seconds: between two looks at a holder; after another was quicker."""


@dataclass(frozen=True)
class Wanted:
    """What somebody wants to change.

    Attributes:
        collection: its name.
        total: points that it will have.
        wait: seconds to wait for another that is at it.
        holder: the process that wants to; the default is this one.
    """

    collection: str
    total: int
    wait: float
    holder: str = field(default_factory=process_name)


def acquire(
    ledger: Ledger, wanted: Wanted, whole: Callable[[], bool], clock: Clock | None = None, beats: bool = True
) -> Lease | None:
    """Return the right to change a collection; None where ``whole`` says that there is nothing left to do.

    Raises:
        CriticalError: another run is still changing it when the time is over; names it.
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
    """Looks at whoever has the right, by a clock of its own: one that gives no sign of life is dead."""

    def __init__(self, wanted: Wanted, clock: Clock) -> None:
        self._wanted, self._clock = wanted, clock
        self._began = self._since = clock.now()
        self._turn, self._said = NEVER, False

    def is_free(self, there: Entry) -> bool:
        """Return whether nobody alive has it but who wants it."""
        if there.turn != self._turn:
            self._turn, self._since = there.turn, self._clock.now()
        silent = self._clock.now() - self._since
        return not there.changing or there.holder == self._wanted.holder or silent >= SILENCE

    def wait(self, there: Entry) -> None:
        """Wait a little, and say for whom."""
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
        """Say that nobody waits any more."""
        if self._said:
            reporting.report("waiting", 1, 1)
        self._said = False


def _close(ledger: Ledger, there: Entry | None) -> None:
    """Say that a holder is done which died between its last point and its last word, or everybody would wait for it."""
    if there is not None and there.changing:
        with suppress(Exception):  # who may only read need not say it
            ledger.write(replace(there, turn=there.turn + 1, changing=False), there.turn)


def _entry(wanted: Wanted, there: Entry | None) -> Entry:
    turn = there.turn + 1 if there else 0
    who = f"{socket.gethostname()}:{os.getpid()}"
    return Entry(wanted.collection, turn, wanted.holder, run_name(), who, True, 0, wanted.total, now_said())
