"""The lease: the right to change a collection. A heartbeat keeps it until it is returned; ``taking`` acquires it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from threading import Event, Lock, Thread
from time import monotonic, sleep
from uuid import uuid4

from rag_harness.errors import CriticalError
from rag_harness.files.log import log
from rag_harness.retrieval.indexes.server.ledger import CollectionLedger, Entry

BEAT, SILENCE = 10.0, 60.0
"""Seconds between two heartbeats, and seconds without one after which a holder counts as dead."""

_SEED = uuid4().hex


@dataclass(frozen=True)
class Clock:
    """The clock for waits; tests replace it."""

    now: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


def process_name() -> str:
    """Return a unique name of this process, different also from its forks."""
    return f"{_SEED}-{os.getpid()}"


def run_name() -> str:
    """Return the name of this process's run: that of xdist, or its own."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", process_name())


class Lease:
    """The right of this process to change a collection. It renews the lease every ``BEAT`` seconds.

    Args:
        ledger: the ledger of leases.
        entry: the entry that was written when the lease was taken.
        beats: whether a thread renews the lease; tests do it themselves.
    """

    def __init__(self, ledger: CollectionLedger, entry: Entry, beats: bool = True) -> None:
        self._ledger, self._entry = ledger, entry
        self._lock, self._ended, self._lost = Lock(), Event(), False
        if beats:
            Thread(target=self._beat_on, name="rag-qdrant-lease", daemon=True).start()

    @property
    def turn(self) -> int:
        """The turn of the last written entry."""
        return self._entry.turn

    def check(self) -> None:
        """Check that this process still holds the lease.

        Raises:
            CriticalError: another run holds it, because this one gave no heartbeat for too long.
        """
        if self._lost:
            raise CriticalError(
                f"Another run has taken over collection {self._entry.collection}: it had not heard of this one for "
                f"{SILENCE:.0f} s. Run again: what is there is not sent again."
            )

    def progress(self, done: int) -> None:
        """Set the number of points done, for the next heartbeat."""
        with self._lock:
            self._entry = replace(self._entry, done=done)

    def beat(self) -> None:
        """Write a heartbeat."""
        self._write(changing=True)

    def give_back(self) -> None:
        """Return the lease, once. If that cannot be written, others take it when the heartbeats stop."""
        if self._ended.is_set():
            return
        self._ended.set()
        with suppress(Exception):
            self._write(changing=False)

    def _write(self, changing: bool) -> None:
        with self._lock:
            if self._lost or (self._ended.is_set() and changing):
                return
            seen = self._entry
            mine = replace(seen, turn=seen.turn + 1, changing=changing, heard=now_said())
            if self._ledger.write(mine, seen.turn):
                self._entry = mine
            else:
                self._find_out(mine)

    def _find_out(self, mine: Entry) -> None:
        """Check whether the lease is lost. A write without an answer may have succeeded."""
        there = self._ledger.read(mine.collection)
        self._lost = there is None or there.holder != mine.holder
        if there is not None and not self._lost:
            self._entry = replace(there, done=mine.done)

    def _beat_on(self) -> None:
        while not self._ended.wait(BEAT) and not self._lost:
            try:
                self.beat()
            except Exception as error:
                log.warning("No sign of life can be given for %s: %s", self._entry.collection, error)


def now_said() -> str:
    """Return the current time as text."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
