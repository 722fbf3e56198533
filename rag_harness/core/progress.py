"""Long work: progress for listeners and logs, groups of items, and control of the garbage collector."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from threading import Event, Thread
from time import monotonic
from typing import Protocol, TypeVar

# Progress of long work other than trials. The code that works reports; listeners get the reports.


class WorkListener(Protocol):
    """Gets reports of progress, in the thread that works."""

    def __call__(self, what: str, done: int, total: int, unit: str) -> None:
        """``done`` of ``total`` are done. The work is over when the two are equal."""
        ...


_listeners: tuple[WorkListener, ...] = ()


def report(what: str, done: int, total: int, unit: str = "") -> None:
    """Report the progress of ``what``, e.g. ``report("embedding", 512, 1830, "chunks")``.

    The first report of a work has ``done`` 0, the last ``total``. A report costs nothing where nobody listens.
    """
    # The tuple is replaced and never changed: another thread may add or remove a listener meanwhile.
    for listener in _listeners:
        listener(what, done, total, unit)


@contextmanager
def listening(listener: WorkListener) -> Iterator[None]:
    """Pass all reports of this process to ``listener`` during the block."""
    global _listeners  # noqa: PLW0603 - one process, one set of listeners, as with logging
    _listeners = (*_listeners, listener)
    try:
        yield
    finally:
        _listeners = tuple(known for known in _listeners if known is not listener)


@dataclass(frozen=True)
class _ReportedWork:
    what: str
    done: int
    total: int
    unit: str
    began: float
    """Time of the first report, in seconds of the clock."""
    first: int
    """How much was done at the first report."""
    at: float


class ProgressText:
    """The last report of unfinished work, as text: ``embedding 512/1,830 chunks, 32/s, 0:41 left``.

    Before anything is done: ``embedding 1,830 chunks: starting``.
    """

    def __init__(self) -> None:
        # Always replaced as a whole: another thread reads it.
        self._heard: _ReportedWork | None = None
        self._begun: dict[tuple[str, int, str], _ReportedWork] = {}

    def hear(self, what: str, done: int, total: int, unit: str) -> None:
        """Take a report. Finished work is forgotten. Work that contains other work goes on when the inner work ends."""
        key, now = (what, total, unit), monotonic()
        last = self._begun.pop(key, None)
        goes_on = last is not None and done and last.done <= done
        began, first = (last.began, last.first) if goes_on and last is not None else (now, done)
        if goes_on and last is not None and not last.first and 0 < last.done < done:
            began, first = last.at, last.done  # the first step may have loaded a model
        self._heard = _ReportedWork(what, done, total, unit, began, first, now) if done < total else None
        if self._heard is not None:
            self._begun[key] = self._heard

    @property
    def share(self) -> tuple[int, int]:
        """How much of the work is done, and how much there is; none of one where no work is running."""
        heard = self._heard
        return (0, 1) if heard is None else (heard.done, heard.total)

    def text(self) -> str:
        """Return the current work, its speed and the time left; empty where no work is running."""
        heard = self._heard
        if heard is None:
            return ""
        if not heard.unit:
            return heard.what
        if not heard.done:
            return f"{heard.what} {heard.total:,} {heard.unit}: starting"
        counted = f"{heard.what} {heard.done:,}/{heard.total:,} {heard.unit}"
        done, took = heard.done - heard.first, heard.at - heard.began
        # The first step may have loaded a model, so a small one says nothing of the speed.
        if not took or not done or (not heard.first and done < heard.total * _TELLING):
            return counted
        # Time for the rest at the speed so far, less the time since the last report.
        left = max((heard.total - heard.done) * took / done - (monotonic() - heard.at), 0.0)
        return f"{counted}, {_rate(done / took)}/s, {clock(left)} left"


_TELLING = 0.05
"""Share of the work from which its first step tells the speed."""


def _rate(each_second: float) -> str:
    return f"{each_second:,.0f}" if each_second >= 10 else f"{each_second:.1f}"


def clock(seconds: float) -> str:
    """Return seconds as minutes and seconds, from an hour on with hours: ``1:05``, ``1:00:05``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class LinesOfWork:
    """Says how far the current work is, while the block lasts.

    Args:
        text: gives the text; empty where no work is running.
        say: prints it.
    """

    first, longest = 1.0, 30.0
    """Seconds before the first line and between the last lines. The time between two lines doubles in between."""

    def __init__(self, text: Callable[[], str], say: Callable[[str], None]) -> None:
        self._text, self._say = text, say
        self._ended = Event()
        self._thread = Thread(target=self._lines, name="rag-progress", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _lines(self) -> None:
        pause, said, runs = self.first, "", False
        while not self._ended.wait(pause):
            text = self._text()
            # Work that is over within a pause needs no line.
            done = text.partition(", ")[0]  # and no line that differs by the time that is left alone
            if text and runs and done != said:
                self._say(text)
                said, pause = done, min(2 * pause, self.longest)
            runs = bool(text)
            if not runs:
                pause = self.first


_T = TypeVar("_T")


def grouped(items: Iterable[_T], most: int) -> Iterator[list[_T]]:
    """Yield the items in lists of ``most``; the last may be shorter, and none is empty."""
    found = iter(items)
    while group := list(islice(found, most)):
        yield group


@contextmanager
def uncollected() -> Iterator[None]:
    """Turn the collector off during the block, for work whose objects all stay: it would search them for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def give_back() -> None:
    """Collect garbage and return free memory to the system; for use after work on large texts."""
    gc.collect()
    if sys.platform == "linux":
        import ctypes

        # glibc keeps freed memory for the thread that used it. Other C libraries lack this function.
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)
