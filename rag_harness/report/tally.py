"""Counts rows as they come, for the progress line."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from rag_harness.report.money import money

if TYPE_CHECKING:
    # No import of NumPy or pydantic at run time: the progress line appears before anything is asked for.
    from rag_harness.results.row import ExperimentResult

_WINDOW_SECONDS = 20.0
_LEAST_SECONDS = 3.0
"""Rows come in bursts, one for all trials in flight. A speed from fewer seconds would not predict the rest."""
_MOST_ARRIVALS = 1000


class TrialTally:
    """Counts of a run of ``total`` trials. Times are seconds of a monotonic clock."""

    def __init__(self, total: int) -> None:
        self.total: int = total
        self.done: int = 0
        self.errors: int = 0
        self.retries: int = 0
        self.tokens: int = 0
        self.cost_usd: float = 0.0
        self._arrivals: deque[float] = deque(maxlen=_MOST_ARRIVALS)

    def add(self, row: ExperimentResult, resumed: bool, now: float) -> None:
        """Count a row. A resumed or replayed row was paid for earlier."""
        self.done += 1
        self.errors += not row.ok
        if resumed:
            return
        self._arrivals.append(now)
        self.retries += row.retries
        if not row.timings_recorded:
            self.tokens += row.usage.prompt_tokens + row.usage.completion_tokens
            self.cost_usd += row.cost_usd or 0.0

    def seconds_left(self, now: float) -> float | None:
        """Return the seconds for the remaining trials at the recent speed; None where that is not known."""
        each = self._seconds_each(now)
        return None if each is None else max(self.total - self.done, 0) * each

    def pace(self, now: float) -> list[str]:
        """Return the recent speed and the time left in words, ``12 a minute`` and ``8 min left``; empty at first."""
        each = self._seconds_each(now)
        if not each:
            return []
        left = max(self.total - self.done, 0) * each
        said = f"{left:.0f} s left" if left < 100 else f"{left / 60:.0f} min left"
        return [f"{60 / each:,.0f} a minute", said]

    def _seconds_each(self, now: float) -> float | None:
        """Return the seconds between two rows in the last seconds; None where there were too few."""
        while len(self._arrivals) > 2 and now - self._arrivals[0] > _WINDOW_SECONDS:
            self._arrivals.popleft()
        if len(self._arrivals) < 2 or now - self._arrivals[0] < _LEAST_SECONDS:
            return None
        return (now - self._arrivals[0]) / (len(self._arrivals) - 1)

    def parts(self, now: float, in_flight: int | None = None) -> list[str]:
        """Return the parts of the line, the most important first."""
        left = self.seconds_left(now)
        return [
            f"{self.done}/{self.total}",
            *([f"{_clock(left)} left"] if left is not None and self.done < self.total else []),
            *([f"{self.errors} error{'s' * (self.errors > 1)}"] if self.errors else []),
            *([money(self.cost_usd)] if self.cost_usd else []),
            *([f"{in_flight} in flight"] if in_flight else []),
            *([f"{self.retries} {'retry' if self.retries == 1 else 'retries'}"] if self.retries else []),
            *([f"{_short(self.tokens)} tokens"] if self.tokens else []),
        ]


def _short(count: int) -> str:
    return str(count) if count < 10_000 else f"{count / 1000:.0f}k" if count < 1e6 else f"{count / 1e6:.2f}M"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
