"""Protocols of a limiter and a budget. Both are in this process, or in one process for many."""

from __future__ import annotations

from typing import Protocol

from rag_harness.models.call_rates import Turn


class Line(Protocol):
    """A limiter: calls to one server wait here for their turn."""

    async def enter(self, tokens: float) -> Turn:
        """Wait for a turn. Who gets a turn must call ``leave``.

        Raises:
            ModelCallError: the server has refused all calls for too long.
        """
        ...

    def leave(self, turn: Turn) -> None:
        """End a turn. Its ``tokens`` are now the tokens used."""
        ...

    def answered(self) -> None:
        """Note that the server accepted a call."""
        ...

    def refused(self, turn: Turn, retry_after: float | None) -> None:
        """Note that the server refused a call because of too many."""
        ...


class Purse(Protocol):
    """A budget for calls."""

    async def reserve(self, usd: float) -> None:
        """Reserve the highest possible cost of a call.

        Raises:
            BudgetError: the call could pass the limit, whatever the calls in flight will cost.
        """
        ...

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reserved amount of a call by its cost."""
        ...
