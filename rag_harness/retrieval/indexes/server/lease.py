"""The right to change a collection: taken where nobody has it, kept by a heartbeat, given back; and waiting for it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from threading import Event, Lock, Thread
from time import monotonic, sleep
from uuid import uuid4

from rag_harness import work
from rag_harness.errors import CriticalError
from rag_harness.files.log import log
from rag_harness.retrieval.indexes.server.ledger import NEVER, Entry, Ledger

BEAT, SILENCE, POLL = 10.0, 60.0, 2.0
"""Seconds: between two signs of life; without one until a holder counts as dead; between two looks at a holder."""

_AGAIN = 0.05
"""Seconds after another was quicker."""

_SEED = uuid4().hex


@dataclass(frozen=True)
class Clock:
    """Time as whoever waits has it; tests have another."""

    now: Callable[[], float] = monotonic
    sleep: Callable[[float], None] = sleep


def process_name() -> str:
    """Name this process as no other is named, one that was forked from it neither."""
    return f"{_SEED}-{os.getpid()}"


def run_name() -> str:
    """Name the run that this process belongs to: xdist's, or its own."""
    return os.environ.get("PYTEST_XDIST_TESTRUNUID", process_name())


class Lease:
    """A collection that this process may change; as long as it says so, every ``BEAT`` seconds.

    Args:
        ledger: where it is said.
        entry: as it was written when the lease was taken.
        beats: whether a thread says so; tests do it themselves.
    """

    def __init__(self, ledger: Ledger, entry: Entry, beats: bool = True) -> None:
        self._ledger, self._entry = ledger, entry
        self._lock, self._ended, self._lost = Lock(), Event(), False
        if beats:
            Thread(target=self._beat_on, name="rag-qdrant-lease", daemon=True).start()

    @property
    def turn(self) -> int:
        """The turn of what was last written."""
        return self._entry.turn

    def check(self) -> None:
        """Check that the collection is still this process's to change.

        Raises:
            CriticalError: another run holds it; it was not heard of this one for too long.
        """
        if self._lost:
            raise CriticalError(
                f"Another run has taken over collection {self._entry.collection}: it had not heard of this one for "
                f"{SILENCE:.0f} s. Run again: what is there is not sent again."
            )

    def progress(self, done: int) -> None:
        """Note how many points are there; the next heartbeat says so."""
        with self._lock:
            self._entry = replace(self._entry, done=done)

    def beat(self) -> None:
        """Say that the holder lives."""
        self._write(changing=True)

    def give_back(self) -> None:
        """Let others change the collection, once; where it cannot be said, they find out by the silence."""
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
            mine = replace(seen, turn=seen.turn + 1, changing=changing, heard=_now())
            if self._ledger.write(mine, seen.turn):
                self._entry = mine
            else:
                self._find_out(mine)

    def _find_out(self, mine: Entry) -> None:
        """Learn whether it was lost: an answer that did not come may have been written all the same."""
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


@dataclass(frozen=True)
class Wanted:
    """What somebody wants to change.

    Attributes:
        collection: its name.
        total: points that it will have.
        holder: the process that wants to; the default is this one.
        wait: seconds to wait for another that is at it.
    """

    collection: str
    total: int
    wait: float
    holder: str = field(default_factory=process_name)


def acquire(
    ledger: Ledger,
    wanted: Wanted,
    whole: Callable[[], bool],
    clock: Clock | None = None,
    beats: bool = True,
) -> Lease | None:
    """Return the right to change a collection; None where ``whole`` says that there is nothing left to do.

    Raises:
        CriticalError: another run is still changing it when the time is over; names it.
    """
    clock = clock or Clock()
    began, watched, since = clock.now(), NEVER, clock.now()
    waited = False
    while True:
        there, now = ledger.read(wanted.collection), clock.now()
        if there is not None and there.turn != watched:
            watched, since = there.turn, now
        if _is_free(there, wanted.holder, now - since):
            if waited:
                work.report("waiting", 1, 1)
                waited = False
            if whole():
                _close(ledger, there)
                return None
            entry = _entry(wanted, there)
            if ledger.write(entry, there.turn if there else NEVER):
                return Lease(ledger, entry, beats)
            clock.sleep(_AGAIN)
            continue
        assert there is not None  # it would be free
        if now - began >= wanted.wait:
            raise CriticalError(_refusal(there, wanted.wait))
        work.report(f"waiting for {there.who}", there.done, max(there.total, there.done + 1), "chunks")
        waited = True
        clock.sleep(min(POLL, wanted.wait))


def _close(ledger: Ledger, there: Entry | None) -> None:
    """Say that a holder is done which died between its last point and its last word, or everybody would wait for it."""
    if there is not None and there.changing:
        with suppress(Exception):  # who may only read need not say it
            ledger.write(replace(there, turn=there.turn + 1, changing=False), there.turn)


def _is_free(there: Entry | None, holder: str, silent: float) -> bool:
    return there is None or not there.changing or there.holder == holder or silent >= SILENCE


def _entry(wanted: Wanted, there: Entry | None) -> Entry:
    turn = there.turn + 1 if there else 0
    who = f"{socket.gethostname()}:{os.getpid()}"
    return Entry(wanted.collection, turn, wanted.holder, run_name(), who, True, 0, wanted.total, _now())


def _refusal(there: Entry, waited: float) -> str:
    return (
        f"Collection {there.collection} is being changed by another run ({there.who}, {there.done:,} of "
        f"{there.total:,} chunks, last heard of {there.heard}), and still is after {waited:.0f} s. Wait for it, or "
        f"raise rag_qdrant_cluster wait=."
    )


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
