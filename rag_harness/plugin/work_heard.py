"""What was last heard of work that takes long, in words: ``embedding 512/1,830 chunks, 0:41 left``."""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic


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
    """Listens to ``rag_harness.work``, and remembers the last piece of it that is not over."""

    def __init__(self) -> None:
        # Replaced whole: it is read in another thread.
        self._heard: _Heard | None = None

    def hear(self, what: str, done: int, total: int, unit: str) -> None:
        """Take a report; work that is done is forgotten."""
        last, now = self._heard, monotonic()
        goes_on = last is not None and (last.what, last.total, last.unit) == (what, total, unit) and last.done <= done
        began, first = (last.began, last.first) if goes_on and last is not None else (now, done)
        self._heard = _Heard(what, done, total, unit, began, first, now) if done < total else None

    def text(self) -> str:
        """Return what is being done and how long it will take; empty where nothing is."""
        heard = self._heard
        if heard is None:
            return ""
        counted = f"{heard.what} {heard.done:,}/{heard.total:,} {heard.unit}".rstrip()
        left = _seconds_left(heard, monotonic())
        return f"{counted}, {_clock(left)} left" if left is not None else counted


def _seconds_left(heard: _Heard, now: float) -> float | None:
    """Return what the rest takes at the speed so far, less what has passed since it was last heard of."""
    done, took = heard.done - heard.first, heard.at - heard.began
    if not done:
        return None
    return max((heard.total - heard.done) * took / done - (now - heard.at), 0.0)


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
