"""Work that takes long and is no trial: whoever does it reports how far it is, whoever wants to know listens."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from typing import Protocol


class Listener(Protocol):
    """Hears of work, in the thread that does it."""

    def __call__(self, what: str, done: int, total: int, unit: str) -> None:
        """``done`` of ``total`` are done; the work is over where they are equal."""
        ...


_listeners: tuple[Listener, ...] = ()


def report(what: str, done: int, total: int, unit: str = "") -> None:
    """Say that ``done`` of ``total`` are done of ``what``, e.g. ``report("embedding", 512, 1830, "chunks")``.

    Say it first with 0 and last with ``total``. Costs nothing where nobody listens.
    """
    # A tuple that is replaced, never changed: a listener may come or go in another thread meanwhile.
    for listener in _listeners:
        listener(what, done, total, unit)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear of all work in this process for as long as the block lasts."""
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
    """Seconds of the clock when it was first heard of."""
    first: int
    """How much was done then."""
    at: float


class WorkHeard:
    """What was last heard of work that is not over, in words: ``embedding 512/1,830 chunks, 32/s, 0:41 left``."""

    def __init__(self) -> None:
        # Replaced whole: it is read in another thread.
        self._heard: _Heard | None = None
        self._begun: dict[tuple[str, int, str], _Heard] = {}

    def hear(self, what: str, done: int, total: int, unit: str) -> None:
        """Take a report; work that is done is forgotten. Work that other work is a part of goes on meanwhile."""
        key, now = (what, total, unit), monotonic()
        last = self._begun.pop(key, None)
        goes_on = last is not None and done and last.done <= done
        began, first = (last.began, last.first) if goes_on and last is not None else (now, done)
        self._heard = _Heard(what, done, total, unit, began, first, now) if done < total else None
        if self._heard is not None:
            self._begun[key] = self._heard

    def text(self) -> str:
        """Return what is being done, how fast, and how long it will take; empty where nothing is."""
        heard = self._heard
        if heard is None:
            return ""
        counted = f"{heard.what} {heard.done:,}/{heard.total:,} {heard.unit}".rstrip()
        done, took = heard.done - heard.first, heard.at - heard.began
        if not done or not took:
            return counted
        # What the rest takes at the speed so far, less what has passed since it was last heard of.
        left = max((heard.total - heard.done) * took / done - (monotonic() - heard.at), 0.0)
        return f"{counted}, {_rate(done / took)}/s, {_clock(left)} left"


def _rate(each_second: float) -> str:
    return f"{each_second:,.0f}" if each_second >= 10 else f"{each_second:.1f}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
