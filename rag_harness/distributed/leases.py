"""A worker's side of the ledger: calls that wait together ask together, so that asking costs each a small part."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from itertools import count
from typing import Protocol

from rag_harness.distributed.ledger import Caps, Grant, Verdicts
from rag_harness.errors import BudgetError, CriticalError
from rag_harness.models.allowed import Line, Purse
from rag_harness.models.limiter import Limiter
from rag_harness.models.limits import Limits, Turn
from rag_harness.models.meter import Meter
from rag_harness.settings import Settings

RETRY = 0.05
"""Seconds until money is asked for again that other workers' calls may yet leave over."""


MOST_WAIT = 1.0
"""Seconds until turns are asked for again where tokens are counted."""
_numbers = count(1)
_Waiting = dict[str, tuple[float, asyncio.Future[None]]]


class RemoteLedger(Protocol):
    """The ledger of the run, in another process."""

    async def calls(
        self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]
    ) -> Grant: ...

    async def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> Verdicts: ...


class LeasedMeter(Meter):
    """Budget and rates of the whole run, and this worker's part of the calls in flight.

    Args:
        settings: of the worker: ``concurrency`` is its part, rates and budget are the run's.
        ledger: gives that of the run, when something has to be counted.
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
        """Say what the last calls have cost."""
        for purse in self._purses:
            await purse.settled()


class _Asking:
    """Runs one exchange at a time, again while something waits."""

    def __init__(self, exchange: Callable[[], Awaitable[float]], fail: Callable[[Exception], None]) -> None:
        self._exchange, self._fail = exchange, fail
        self._task: asyncio.Task[None] | None = None
        self._again = False

    def wake(self) -> None:
        """Have an exchange soon."""
        self._again = True
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def idle(self) -> None:
        """Wait until nothing waits."""
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        """An exchange that fails, fails whoever waits: without the ledger nothing may be asked."""
        while self._again:
            self._again = False
            # Whatever is asked in the same breath goes in one call.
            await asyncio.sleep(0)
            try:
                wait = await self._exchange()
            except Exception as error:
                self._fail(error)
                return
            if wait:
                self._again = True
                await asyncio.sleep(wait)


class LeasedLine:
    """Turns as the ledger grants them, then a place among the calls of this worker."""

    def __init__(self, inner: Limiter, server: str, caps: Caps, ledger: RemoteLedger, worker: str) -> None:
        self._inner, self._server, self._caps, self._ledger, self._worker = inner, server, caps, ledger, worker
        self._waiting: _Waiting = {}
        self._granted: dict[int, str] = {}
        self._used: dict[str, float] = {}
        self._asking = _Asking(self._exchange, lambda error: _fail(self._waiting, error))

    async def enter(self, tokens: float) -> Turn:
        """Wait for a turn; see ``models.allowed.Line``."""
        call = f"{self._worker}:{next(_numbers)}"
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[call] = tokens, granted
        self._asking.wake()
        try:
            await granted
        finally:
            self._waiting.pop(call, None)
        turn = await self._inner.enter(tokens)
        self._granted[id(turn)] = call
        return turn

    def leave(self, turn: Turn) -> None:
        """End a turn; what it has used is told with the next request."""
        call = self._granted.pop(id(turn), "")
        if call and self._caps.tpm:
            self._used[call] = turn.tokens
        self._inner.leave(turn)

    def answered(self) -> None:
        """The server took a call."""
        self._inner.answered()

    def refused(self, turn: Turn, retry_after: float | None) -> None:
        """The server said that it gets too many."""
        self._inner.refused(turn, retry_after)

    async def _exchange(self) -> float:
        asked = {call: tokens for call, (tokens, _) in self._waiting.items()}
        if not asked:
            return 0.0
        used, self._used = self._used, {}
        grant = await self._ledger.calls(self._server, self._caps, asked, used)
        for call in list(asked)[: grant.calls]:
            waiting = self._waiting.pop(call, None)
            if waiting is not None and not waiting[1].done():
                waiting[1].set_result(None)
        # Calls that end with fewer tokens than were taken for them make room sooner.
        return min(grant.wait, MOST_WAIT) if self._caps.tpm else grant.wait


class LeasedPurse:
    """Money as the ledger grants it."""

    def __init__(self, limit: float, ledger: RemoteLedger, worker: str) -> None:
        self._limit, self._ledger, self._worker = limit, ledger, worker
        self._waiting: _Waiting = {}
        self._open: dict[float, list[str]] = {}
        self._settled: dict[str, float] = {}
        self._asking = _Asking(self._exchange, lambda error: _fail(self._waiting, error))

    async def reserve(self, usd: float) -> None:
        """Put aside what a call can cost at most; see ``models.allowed.Purse``."""
        mine = f"{self._worker}:{next(_numbers)}"
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[mine] = usd, granted
        self._asking.wake()
        try:
            await granted
        except asyncio.CancelledError:
            self._withdraw(mine)
            raise
        self._open.setdefault(usd, []).append(mine)

    def settle(self, reserved: float, cost: float) -> None:
        """Replace what was put aside for a call by what it cost; told soon."""
        self._settled[self._open[reserved].pop()] = cost
        self._asking.wake()

    async def settled(self) -> None:
        """Return when the ledger knows what all calls have cost."""
        self._asking.wake()
        await self._asking.idle()

    def _withdraw(self, mine: str) -> None:
        self._waiting.pop(mine, None)
        # The ledger may have granted it meanwhile.
        self._settled[mine] = 0.0
        self._asking.wake()

    async def _exchange(self) -> float:
        asked = {each: usd for each, (usd, _) in self._waiting.items()}
        settled, self._settled = self._settled, {}
        if not asked and not settled:
            return 0.0
        verdicts = await self._ledger.money(asked, settled)
        for each in verdicts.granted | verdicts.refused:
            self._tell(each, each in verdicts.granted, verdicts.spent)
        return RETRY if self._waiting else 0.0

    def _tell(self, each: str, is_granted: bool, spent: float) -> None:
        usd, waiting = self._waiting.pop(each, (0.0, None))
        if waiting is None or waiting.done():
            return
        if is_granted:
            waiting.set_result(None)
            return
        waiting.set_exception(
            BudgetError(
                f"the next call may cost up to {usd:.6f} USD, and {spent:.6f} of {self._limit:.6f} USD are spent. A "
                f"larger budget: --rag-budget USD"
            )
        )


def _fail(waiting: _Waiting, error: Exception) -> None:
    for _, future in waiting.values():
        if not future.done():
            future.set_exception(CriticalError(f"The ledger of the run cannot be asked, so no call may start: {error}"))
