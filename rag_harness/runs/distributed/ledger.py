"""The ledger of calls, tokens and money of all workers, the leases that workers take from it.

Equal shares without one.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from time import monotonic, time
from typing import Protocol

from rag_harness.core.errors import BudgetError, CriticalError
from rag_harness.core.files import APPENDING
from rag_harness.core.json_text import read_json
from rag_harness.core.settings import Settings
from rag_harness.models.throttling import (
    PARTS_OF_A_DOLLAR,
    Cap,
    Limiter,
    Limits,
    Meter,
    RateLimiter,
    SpendLimit,
    Turn,
    in_parts,
)

# The ledger of a run: calls and tokens a minute, and money, of all workers. One process holds it. It knows no Ray.
#
# A grant is on disk before it is returned. A ledger that is started again counts a grant without a settlement as spent,
# until it is settled.

PACE = 0.002
"""Seconds between the requests of two workers: twice the time of an actor's call, so that one ledger keeps up."""


@dataclass(frozen=True)
class Caps:
    """The limits of one server: calls and tokens in any minute; 0 means unlimited."""

    rpm: float
    tpm: float


@dataclass(frozen=True)
class Grant:
    """How many of the waiting calls may start, and the seconds until the worker may ask again."""

    calls: int
    wait: float = 0.0


@dataclass(frozen=True)
class MoneyVerdicts:
    """The reservations that are granted, and those that never will be, by id. Any other may be asked for again."""

    granted: frozenset[str]
    refused: frozenset[str]
    spent: float


class RunLedger:
    """Counts calls, tokens and money of one run.

    Args:
        file: where grants are written; an existing file is read first.
        budget: USD; 0 means unlimited.
    """

    def __init__(self, file: Path, budget: float) -> None:
        self._room = in_parts(budget)
        self._caps: dict[tuple[str, Caps], tuple[Cap, Cap]] = {}
        self._turns: dict[str, Turn] = {}
        self._due: dict[str, float] = {}
        self._open: dict[str, int] = {}
        self._settled: set[str] = set()
        self._spent = self._aside = 0
        self._read(file)
        file.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(file, APPENDING, 0o644)

    def calls(self, server: str, caps: Caps, waiting: Mapping[str, float], used: Mapping[str, float]) -> Grant:
        """Grant as many of ``waiting`` as may start now, in their order.

        Args:
            server: the server that the calls go to.
            caps: limits of the server.
            waiting: estimated tokens of each waiting call, by its id.
            used: tokens that earlier calls have really used, by their ids.
        """
        now = monotonic()
        self._correct(used)
        rate, amount = self._caps_of(server, caps)
        granted: list[tuple[str, float]] = []
        for call, tokens in waiting.items():
            opens = max(rate.opens(tokens, now), amount.opens(tokens, now))
            if opens > now:
                return self._granted(server, caps, granted, self._paced(call, now, opens - now))
            turn = Turn(now, tokens)
            if caps.tpm:
                self._turns[call] = turn
            rate.add(turn)
            amount.add(turn)
            granted.append((call, tokens))
        return self._granted(server, caps, granted, 0.0)

    def _correct(self, used: Mapping[str, float]) -> None:
        for call, tokens in used.items():
            if call in self._turns:
                self._turns.pop(call).tokens = tokens

    def _paced(self, call: str, now: float, wait: float) -> float:
        """Return in how many seconds the worker of a call may ask again. The waiting workers ask one after another."""
        worker = call.rpartition(":")[0]
        self._due = {each: due for each, due in self._due.items() if due > now and each != worker}
        wait = max(wait, PACE * (len(self._due) + 1))
        self._due[worker] = now + wait
        return wait

    def _granted(self, server: str, caps: Caps, calls: Sequence[tuple[str, float]], wait: float) -> Grant:
        if calls:
            self._write([{"server": server, "caps": [caps.rpm, caps.tpm], "at": time(), "calls": calls}])
        return Grant(len(calls), wait)

    def money(self, asked: Mapping[str, float], settled: Mapping[str, float]) -> MoneyVerdicts:
        """Settle ended calls at their cost, then reserve the highest cost of the new ones, in their order.

        Args:
            asked: USD by the id of the reservation. A reservation that was granted before is granted again.
            settled: USD by the id of the reservation.
        """
        for reservation, cost in settled.items():
            self._settle(reservation, in_parts(cost))
        granted, refused = set(), set()
        for reservation, usd in asked.items():
            parts = in_parts(usd)
            if reservation in self._open or self._spent + self._aside + parts <= self._room:
                self._put_aside(reservation, parts)
                granted.add(reservation)
            elif self._spent + parts > self._room:
                refused.add(reservation)
            else:
                break  # later calls wait too: smaller ones would always take the room of a large one
        lines = [{"settled": key, "usd": cost} for key, cost in settled.items()]
        self._write([*lines, *({"aside": key, "usd": asked[key]} for key in granted)])
        return MoneyVerdicts(frozenset(granted), frozenset(refused), self._spent / PARTS_OF_A_DOLLAR)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _settle(self, reservation: str, parts: int) -> None:
        if reservation not in self._settled:
            self._settled.add(reservation)
            self._aside -= self._open.pop(reservation, 0)
            self._spent += parts

    def _put_aside(self, reservation: str, parts: int) -> None:
        self._aside += parts - self._open.get(reservation, 0)
        self._open[reservation] = parts

    def _caps_of(self, server: str, caps: Caps) -> tuple[Cap, Cap]:
        key = server, caps
        if key not in self._caps:
            self._caps[key] = Cap(caps.rpm), Cap(caps.tpm, counts_tokens=True)
        return self._caps[key]

    def _write(self, lines: Sequence[Mapping[str, object]]) -> None:
        # No fsync: only this ledger reads the file, when it is started again during the run. A machine that fails and
        # loses the data ends the run as well; and with fsync 100 workers would wait for the disk one after another.
        content = "".join(f"{json.dumps(line)}\n" for line in lines)
        if content:
            os.write(self._descriptor, content.encode())

    def _read(self, file: Path) -> None:
        if not file.is_file():
            return
        for line in file.read_bytes().splitlines():
            try:
                said = read_json(line)
            except ValueError:
                continue  # torn by a kill, so that the grant was never returned
            if "settled" in said:
                self._settle(said["settled"], in_parts(said["usd"]))
            elif "aside" in said:
                self._put_aside(said["aside"], in_parts(said["usd"]))
            else:
                self._remember(said["server"], Caps(*said["caps"]), said["at"], said["calls"])

    def _remember(self, server: str, caps: Caps, at: float, calls: Sequence[tuple[str, float]]) -> None:
        # The monotonic clock of this process: somebody may set the machine's clock meanwhile.
        started = monotonic() - max(0.0, time() - at)
        for cap in self._caps_of(server, caps):
            for _, tokens in calls:
                cap.add(Turn(started, tokens))


# A worker's side of the ledger. Calls that wait at the same time ask the ledger in one exchange.

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
        self._purses: list[LeasedSpendLimit] = []

    def _purse(self, limit: float) -> SpendLimit:
        self._purses.append(LeasedSpendLimit(limit, self._ledger(), self._worker))
        return self._purses[-1]

    def _line(self, server: str, window: int, rpm: float) -> RateLimiter:
        inner = Limiter(Limits(window, patience=self._settings.deadline))
        caps = Caps(rpm, self._settings.tpm)
        return LeasedRateLimiter(inner, server, caps, self._ledger(), self._worker) if rpm or caps.tpm else inner

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


class LeasedRateLimiter:
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


class LeasedSpendLimit:
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


def share_of(settings: Settings, workers: int) -> Settings:
    """Return the settings for one of ``workers`` processes. Together they stay within the limits."""
    if workers <= 1:
        return settings
    shared = share_in_flight(settings, workers)
    return replace(
        shared,
        rpm=settings.rpm / workers,
        tpm=settings.tpm / workers,
        budget=settings.budget / workers,
        endpoints=tuple(replace(spec, rpm=spec.rpm / workers) for spec in shared.endpoints),
    )


def share_in_flight(settings: Settings, workers: int) -> Settings:
    """Return the settings for one of ``workers`` processes that ask one ledger for rates and money."""
    endpoints = tuple(replace(spec, concurrency=_part(spec.concurrency, workers)) for spec in settings.endpoints)
    return replace(settings, concurrency=_part(settings.concurrency, workers), endpoints=endpoints)


def _part(most: int, workers: int) -> int:
    """Return a worker's part of a number of calls; 0 means unlimited."""
    return max(1, most // workers) if most else 0
