"""What bounds the calls of a run in one process: one budget, and one limiter a base URL."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from rag_harness.models.budget import Budget
from rag_harness.models.limiter import Limiter
from rag_harness.models.limits import Limits
from rag_harness.settings import Settings
from rag_harness.settings.prices import Prices, prices_of


@dataclass(frozen=True)
class Money:
    """A budget and the prices that its calls are charged at."""

    budget: Budget
    prices: Prices


class Meter:
    """Caps and budget of the settings, shared by every model that is given this object.

    Args:
        settings: of the run; a worker's are its share of it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limiters: dict[str, Limiter] = {}

    @cached_property
    def money(self) -> Money | None:
        """What calls may cost; None where there is no limit.

        Raises:
            SettingsError: the price table cannot be used.
        """
        if not self._settings.budget:
            return None
        return Money(Budget(self._settings.budget), prices_of(self._settings))

    def limiter(self, base_url: str) -> Limiter:
        """Return the limiter of a server: window, calls and tokens a minute are counted for each by itself."""
        url = base_url.rstrip("/")
        if url not in self._limiters:
            known = self._settings
            limits = Limits(known.concurrency, known.rpm, known.tpm, patience=known.deadline)
            self._limiters[url] = Limiter(limits)
        return self._limiters[url]
