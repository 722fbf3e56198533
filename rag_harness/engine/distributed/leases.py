"""A worker's side of the ledger. Calls that wait at the same time ask the ledger in one exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Protocol

from rag_harness.engine.distributed.ledger import Caps, Grant, MoneyVerdicts
from rag_harness.errors import BudgetError, CriticalError
from rag_harness.models.allowed import Line, Purse
from rag_harness.models.call_rates import Limits, Turn
from rag_harness.models.limiter import Limiter
from rag_harness.models.meter import Meter
from rag_harness.settings import Settings

RETRY = 0.05
"""Seconds until money is asked for again: calls of other workers may cost less than was put aside for them."""


MOST_WAIT = 1.0
"""Seconds until turns are asked for again where tokens are counted."""
_numbers = count(1)


class RemoteLedger(Protocol):
    """The ledger of the run, in another process."""

    async def calls(
        self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]
    ) -> Grant: ...

    async def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts: ...


class LeasedMeter(Meter):
    """Budget and rates of the whole run, and this worker's part of the calls in flight.

    Args:
        settings: settings of the worker. ``concurrency`` is its part; rates and budget are the run's.
        ledger: returns the ledger of the run; called when something has to be counted.
        worker: its name.
    """

    def __init__(self, settings: Settings, ledger: Callable[[], RemoteLedger], worker: str) -> None:
        super().__init__(settings)
        self._ledger, self._worker = ledger, worker
        self._purses: list[LeasedPurse] = []

    def _purse(self, limit: float) -> Purse:
        self._purses.append(LeasedPurse(limit, self._ledger(), self._worker))
        return self._purses[-1]

    def _line(self, server: str, window: int, rpm: float) -> Line:
        inner = Limiter(Limits(window, patience=self._settings.deadline))
        caps = Caps(rpm, self._settings.tpm)
        return LeasedLine(inner, server, caps, self._ledger(), self._worker) if rpm or caps.tpm else inner

    async def aclose(self) -> None:
        """Tell the ledger what the last calls have cost."""
        for purse in self._purses:
            await purse.settled()


class _Queue:
    """Calls that wait for the ledger. One exchange asks for all of them, and it is repeated while some wait.

    Args:
        worker: its name begins the ids of its calls.
        exchange: asks the ledger once, and returns the seconds until the next exchange; 0 waits for the next call.
    """

    def __init__(self, worker: str, exchange: Callable[[], Awaitable[float]]) -> None:
        self._worker, self._exchange = worker, exchange
        self._waiting: dict[str, tuple[float, asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._again = False

    @property
    def asked(self) -> dict[str, float]:
        """The amount that each waiting call asks for, by its id, in the order of arrival."""
        return {call: amount for call, (amount, _) in self._waiting.items()}

    def new_id(self) -> str:
        """Return an id for a call that is about to wait."""
        return f"{self._worker}:{next(_numbers)}"

    async def wait(self, call: str, amount: float) -> None:
        """Wait in line until the ledger has answered.

        Raises:
            CriticalError: the ledger cannot be asked. Any other error is the ledger's refusal.
        """
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[call] = amount, granted
        self.wake()
        try:
            await granted
        finally:
            self._waiting.pop(call, None)

    def answer(self, call: str, refusal: Exception | None = None) -> None:
        """Let a call go on, or refuse it. Nothing happens where the call has left the queue."""
        _, waiting = self._waiting.pop(call, (0.0, None))
        if waiting is None or waiting.done():
            return
        if refusal is None:
            waiting.set_result(None)
        else:
            waiting.set_exception(refusal)

    def wake(self) -> None:
        """Start an exchange soon."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def idle(self) -> None:
        """Wait until nothing waits."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        """Exchange while calls wait. A failed exchange fails all of them: without the ledger no call is allowed."""
        while self._again:
            self._again = False
            # Calls that are added in the same step of the loop share one exchange.
            await asyncio.sleep(0)
            try:
                wait = await self._exchange()
            except Exception as error:
                said = f"The ledger of the run cannot be asked, so no call may start: {error}"
                for call in self.asked:
                    self.answer(call, CriticalError(said))
                return
            if wait:
                self._again = True
                await asyncio.sleep(wait)


class LeasedLine:
    """A line in which a call first waits for the ledger's grant, then for a place among this worker's calls."""

    def __init__(self, inner: Limiter, server: str, caps: Caps, ledger: RemoteLedger, worker: str) -> None:
        self._inner, self._server, self._caps, self._ledger = inner, server, caps, ledger
        self._queue = _Queue(worker, self._exchange)
        self._granted: dict[int, str] = {}
        self._used: dict[str, float] = {}

    async def enter(self, tokens: float) -> Turn:
        """Wait for a turn; see ``models.allowed.Line``."""
        call = self._queue.new_id()
        await self._queue.wait(call, tokens)
        turn = await self._inner.enter(tokens)
        self._granted[id(turn)] = call
        return turn

    def leave(self, turn: Turn) -> None:
        """End a turn. The tokens that it has used are reported with the next request."""
        call = self._granted.pop(id(turn), "")
        if call and self._caps.tpm:
            self._used[call] = turn.tokens
        self._inner.leave(turn)

    def answered(self) -> None:
        """Note that the server accepted a call."""
        self._inner.answered()

    def refused(self, turn: Turn, retry_after: float | None) -> None:
        """Note that the server reported too many calls."""
        self._inner.refused(turn, retry_after)

    async def _exchange(self) -> float:
        asked = self._queue.asked
        if not asked:
            return 0.0
        used, self._used = self._used, {}
        grant = await self._ledger.calls(self._server, self._caps, asked, used)
        for call in list(asked)[: grant.calls]:
            self._queue.answer(call)
        # A call may use fewer tokens than were reserved for it; then there is room sooner than the ledger expects.
        return min(grant.wait, MOST_WAIT) if self._caps.tpm else grant.wait


class LeasedPurse:
    """A purse whose money the ledger grants."""

    def __init__(self, limit: float, ledger: RemoteLedger, worker: str) -> None:
        self._limit, self._ledger = limit, ledger
        self._queue = _Queue(worker, self._exchange)
        self._open: dict[float, list[str]] = {}
        self._settled: dict[str, float] = {}

    async def reserve(self, usd: float) -> None:
        """Reserve the highest possible cost of a call; see ``models.allowed.Purse``."""
        mine = self._queue.new_id()
        try:
            await self._queue.wait(mine, usd)
        except asyncio.CancelledError:
            # The ledger may already have granted the reservation.
            self._settled[mine] = 0.0
            self._queue.wake()
            raise
        self._open.setdefault(usd, []).append(mine)

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reservation of a call by its cost. The ledger is told soon."""
        self._settled[self._open[reserved].pop()] = cost
        self._queue.wake()

    async def settled(self) -> None:
        """Return when the ledger knows what all calls have cost."""
        self._queue.wake()
        await self._queue.idle()

    async def _exchange(self) -> float:
        asked = self._queue.asked
        settled, self._settled = self._settled, {}
        if not asked and not settled:
            return 0.0
        verdicts = await self._ledger.money(asked, settled)
        for call in verdicts.granted:
            self._queue.answer(call)
        for call in verdicts.refused:
            self._queue.answer(call, self._refusal(asked[call], verdicts.spent))
        return RETRY if self._queue.asked else 0.0

    def _refusal(self, usd: float, spent: float) -> BudgetError:
        return BudgetError(
            f"the next call may cost up to {usd:.6f} USD, and {spent:.6f} of {self._limit:.6f} USD are spent. A "
            f"larger budget: --rag-budget USD"
        )
