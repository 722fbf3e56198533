"""What a call needs before it may start: a turn, and money. Both are had in this process, or of one for many."""

from __future__ import annotations

from typing import Protocol

from rag_harness.models.limits import Turn


class Line(Protocol):
    """Calls to one server wait here for their turn."""

    async def enter(self, tokens: float) -> Turn:
        """Wait for a turn; whoever gets one must leave.

        Raises:
            ModelCallError: the server has refused everything for too long.
        """
        ...

    def leave(self, turn: Turn) -> None:
        """End a turn, whose ``tokens`` say by now what was used."""
        ...

    def answered(self) -> None:
        """The server took a call."""
        ...

    def refused(self, turn: Turn, retry_after: float | None) -> None:
        """The server said that it gets too many."""
        ...


class Purse(Protocol):
    """Money for calls."""

    async def reserve(self, usd: float) -> None:
        """Put aside what a call can cost at most.

        Raises:
            BudgetError: the call could pass the limit, whatever the calls under way come to.
        """
        ...

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was put aside for a call by what it cost."""
        ...
