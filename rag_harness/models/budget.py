"""Money: what a call could cost is put aside before it starts, and settled once its tokens are known."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from rag_harness.errors import BudgetError

PARTS = 10**12
"""Of a USD. Sums are kept whole: floats would drift."""


@dataclass(eq=False, slots=True)
class _Waiting:
    parts: int
    admitted: asyncio.Future[None]


class Budget:
    """A limit in USD on what was spent and what is put aside for calls under way."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._room = in_parts(limit)
        self._spent = self._aside = 0
        self._waiting: deque[_Waiting] = deque()

    @property
    def spent(self) -> float:
        """USD that calls have cost."""
        return self._spent / PARTS

    async def reserve(self, usd: float) -> None:
        """Put aside what a call can cost at most, waiting for calls under way if they may turn out cheaper.

        Raises:
            BudgetError: the call could pass the limit, whatever the calls under way come to.
        """
        mine = _Waiting(in_parts(usd), asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._admit()
        try:
            await mine.admitted
        except asyncio.CancelledError:
            self._withdraw(mine)
            raise

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was put aside for a call by what it cost: 0 where it failed."""
        self._aside -= in_parts(reserved)
        self._spent += in_parts(cost)
        self._admit()

    def _withdraw(self, mine: _Waiting) -> None:
        if mine.admitted.done() and not mine.admitted.cancelled() and not mine.admitted.exception():
            self._aside -= mine.parts  # it was admitted and cancelled in the same breath
        elif mine in self._waiting:
            self._waiting.remove(mine)
        self._admit()

    def _admit(self) -> None:
        """Answer those at the head of the line: yes, or never; one that may yet fit keeps its place."""
        while self._waiting:
            first = self._waiting[0]
            if first.admitted.done():
                pass  # cancelled, and about to withdraw
            elif self._spent + self._aside + first.parts <= self._room:
                self._aside += first.parts
                first.admitted.set_result(None)
            elif self._spent + first.parts <= self._room:
                return
            else:
                first.admitted.set_exception(self._refusal(first.parts / PARTS))
            self._waiting.popleft()

    def _refusal(self, usd: float) -> BudgetError:
        return BudgetError(
            f"the next call may cost up to {usd:.6f} USD, and {self.spent:.6f} of {self.limit:.6f} USD are spent. "
            f"A larger budget: --rag-budget USD"
        )


def in_parts(usd: float) -> int:
    """Return USD as whole parts."""
    return round(usd * PARTS)
