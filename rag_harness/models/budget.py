"""The budget: the highest cost of a call is reserved before it starts, and settled when its tokens are known."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from rag_harness.errors import BudgetError

PARTS_OF_A_DOLLAR = 10**12
"""Parts of a USD. Sums are whole numbers, because floats would drift."""


@dataclass(eq=False, slots=True)
class _Waiting:
    parts: int
    admitted: asyncio.Future[None]


class Budget:
    """A limit in USD on the money spent and the money reserved for calls in flight."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._room = in_parts(limit)
        self._spent = self._aside = 0
        self._waiting: deque[_Waiting] = deque()

    @property
    def spent(self) -> float:
        """USD spent so far."""
        return self._spent / PARTS_OF_A_DOLLAR

    async def reserve(self, usd: float) -> None:
        """Reserve the highest cost of a call. Wait for calls in flight if they may become cheaper.

        Raises:
            BudgetError: the call could pass the limit, whatever the calls in flight will cost.
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
        """Replace the reserved amount of a call by its cost, which is 0 if it failed."""
        self._aside -= in_parts(reserved)
        self._spent += in_parts(cost)
        self._admit()

    def _withdraw(self, mine: _Waiting) -> None:
        if mine.admitted.done() and not mine.admitted.cancelled() and not mine.admitted.exception():
            self._aside -= mine.parts  # it was admitted and cancelled at the same moment
        elif mine in self._waiting:
            self._waiting.remove(mine)
        self._admit()

    def _admit(self) -> None:
        """Decide the first calls of the queue: admitted, or refused for good. A call that may fit later stays first."""
        while self._waiting:
            first = self._waiting[0]
            if first.admitted.done():
                pass  # cancelled, and about to leave the queue
            elif self._spent + self._aside + first.parts <= self._room:
                self._aside += first.parts
                first.admitted.set_result(None)
            elif self._spent + first.parts <= self._room:
                return
            else:
                first.admitted.set_exception(self._refusal(first.parts / PARTS_OF_A_DOLLAR))
            self._waiting.popleft()

    def _refusal(self, usd: float) -> BudgetError:
        return BudgetError(
            f"the next call may cost up to {usd:.6f} USD, and {self.spent:.6f} of {self.limit:.6f} USD are spent. "
            f"A larger budget: --rag-budget USD"
        )


def in_parts(usd: float) -> int:
    """Return USD as a whole number of parts."""
    return round(usd * PARTS_OF_A_DOLLAR)
