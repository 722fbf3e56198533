"""Makes many model calls at one time, until all are made or it is clear that the model does not answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rag_harness.errors import BudgetError, DeadlineError, ModelCallError, RagHarnessError
from rag_harness.models.until_right import Fault

_A = TypeVar("_A")
_B = TypeVar("_B")
PATIENCE = 4
"""After so many failed calls in a row, no more are made."""
_FAILED = (ModelCallError, DeadlineError)


class AtOnce(Generic[_A, _B]):
    """Does the same work for many things, ``count`` of them at a time.

    Attributes:
        stopped: why some were left out: the budget is spent, or the model cannot be asked.
    """

    def __init__(self, count: int) -> None:
        self._count = max(1, count)
        self._failing = 0
        self.stopped: RagHarnessError | None = None

    async def each(self, things: Sequence[_A], work: Callable[[_A], Awaitable[_B | Fault]]) -> list[_B | Fault | None]:
        """Return the result for each thing, in their order; None for things that were not asked about."""
        results: list[_B | Fault | None] = [None] * len(things)
        todo = iter(enumerate(things))

        async def worker() -> None:
            for place, thing in todo:
                if self.stopped is None:
                    results[place] = await self._done(thing, work)

        await asyncio.gather(*(worker() for _ in range(min(self._count, len(things)))))
        return results

    async def _done(self, thing: _A, work: Callable[[_A], Awaitable[_B | Fault]]) -> _B | Fault | None:
        try:
            done = await work(thing)
        except BudgetError as error:
            self.stopped = error
            return None
        except _FAILED as error:
            self._failing += 1
            if self._failing >= PATIENCE:
                self.stopped = self.stopped or error
            return Fault(f"the writer could not be asked: {error}"[:160])
        self._failing = 0
        return done
