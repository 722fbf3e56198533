"""Progress of long work that is no trial. The code that works reports; listeners hear the reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Protocol


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
class _Heard:
    what: str
    done: int
    total: int
    unit: str
    began: float
    """Time of the first report, in seconds of the clock."""
    first: int
    """How much was done at the first report."""
    at: float


class WorkHeard:
    """The last report of unfinished work, as text: ``embedding 512/1,830 chunks, 32/s, 0:41 left``.

    Before anything is done: ``embedding 1,830 chunks: starting``.
    """

    def __init__(self) -> None:
        # Always replaced as a whole: another thread reads it.
        self._heard: _Heard | None = None
        self._begun: dict[tuple[str, int, str], _Heard] = {}

    def hear(self, what: str, done: int, total: int, unit: str) -> None:
        """Take a report. Finished work is forgotten. Work that contains other work goes on when the inner work ends."""
        key, now = (what, total, unit), monotonic()
        last = self._begun.pop(key, None)
        goes_on = last is not None and done and last.done <= done
        began, first = (last.began, last.first) if goes_on and last is not None else (now, done)
        if goes_on and last is not None and not last.first and 0 < last.done < done:
            began, first = last.at, last.done  # the first step may have loaded a model
        self._heard = _Heard(what, done, total, unit, began, first, now) if done < total else None
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
        return f"{counted}, {_rate(done / took)}/s, {_clock(left)} left"


_TELLING = 0.05
"""Share of the work from which its first step tells the speed."""


def _rate(each_second: float) -> str:
    return f"{each_second:,.0f}" if each_second >= 10 else f"{each_second:.1f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
