"""The meter of a run in one process: one budget, and one limiter for each base URL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rag_harness.models.allowed import Line, Purse
from rag_harness.models.budget import Budget
from rag_harness.models.call_rates import Limits
from rag_harness.models.limiter import Limiter
from rag_harness.settings import Settings
from rag_harness.settings.prices import Prices, prices_of


@dataclass(frozen=True)
class Money:
    """A budget, and the prices of its calls."""

    budget: Purse
    prices: Prices


class Meter:
    """Caps and budget of the settings, shared by all models with this object.

    Args:
        settings: the settings of the run. Those of a worker have its share of the limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limiters: dict[tuple[str, int, float], Line] = {}

    @cached_property
    def money(self) -> Money | None:
        """The budget; None without a limit.

        Raises:
            SettingsError: the price table cannot be used.
        """
        if not self._settings.budget:
            return None
        return Money(self._purse(self._settings.budget), prices_of(self._settings))

    def limiter(self, base_url: str, most: int = 0, rpm: float = 0.0) -> Line:
        """Return the limiter of a server. Each server has its own window and counts per minute.

        Args:
            base_url: the server. Other limits for the same server give another limiter.
            most: most calls in flight, if fewer than in the settings; 0: as in the settings.
            rpm: most calls a minute, if fewer than in the settings; 0: as in the settings.
        """
        known = self._settings
        key = base_url.rstrip("/"), min(most or known.concurrency, known.concurrency), _fewer(rpm, known.rpm)
        if key not in self._limiters:
            _, window, calls = key
            self._limiters[key] = self._line(key[0], window, calls)
        return self._limiters[key]

    def _purse(self, limit: float) -> Purse:
        """Return a budget of ``limit`` USD."""
        return Budget(limit)

    def _line(self, server: str, window: int, rpm: float) -> Line:  # noqa: ARG002 - whoever counts for many needs it
        """Return a limiter for ``server``: at most ``window`` calls in flight, ``rpm`` a minute."""
        return Limiter(Limits(window, rpm, self._settings.tpm, patience=self._settings.deadline))


def _fewer(one: float, other: float) -> float:
    """Return the stricter of two caps; 0 is no cap."""
    return min(one, other) if one and other else one or other
