"""Throttling of calls: rate limits, the spend limit, and the meter of a run."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Protocol

from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import Prices, prices_of

# Rules for when the next call may start. Callers pass the time in seconds; nothing here waits.
#
# The window of calls in flight uses additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP).

LONGEST_WAIT = 60.0
"""Most seconds to wait for a server. A longer request to wait is ignored, so that a run ends in bounded time."""
_MINUTE = 60.0


class Turn:
    """A call that was started: its time, and its tokens, which are an estimate until the usage is known."""

    __slots__ = ("_tokens", "counted_by", "started")

    def __init__(self, started: float, tokens: float = 0.0) -> None:
        self.started: float = started
        self._tokens = tokens
        self.counted_by: Cap | None = None

    @property
    def tokens(self) -> float:
        return self._tokens

    @tokens.setter
    def tokens(self, used: float) -> None:
        if self.counted_by is not None:
            self.counted_by.used += used - self._tokens
        self._tokens = used


class CallWindow:
    """Limit of calls in flight: at most ``most``. A refusal halves it, and each round trip adds one."""

    def __init__(self, most: int) -> None:
        self.most: int = most
        self.size: float = float(most)
        self.in_flight: int = 0
        self._shrunk = -inf

    @property
    def is_full(self) -> bool:
        return self.in_flight >= int(self.size)

    def widen(self) -> None:
        self.size = min(float(self.most), self.size + 1 / self.size)

    def halve(self, turn: Turn, now: float) -> None:
        """Halve the window, but only once a round trip. A call that started before the last halving does not count."""
        if turn.started > self._shrunk:
            self.size, self._shrunk = max(1.0, self.size / 2), now


class Cap:
    """At most ``per_minute`` in any 60 seconds; 0 means no cap. A value below 1 means one call in several minutes."""

    def __init__(self, per_minute: float, counts_tokens: bool = False) -> None:
        self._span = _MINUTE if per_minute >= 1 else _MINUTE / (per_minute or inf)
        self._room = inf if per_minute == 0 else float(max(1, int(per_minute)))
        self._counts_tokens = counts_tokens
        self._turns: deque[Turn] = deque()
        self.used: float = 0.0

    def opens(self, tokens: float, now: float) -> float:
        """Return when a call of ``tokens`` may start: ``now``, or later."""
        if self._room == inf:
            return now
        while self._turns and self._turns[0].started + self._span <= now:
            self._drop(self._turns.popleft())
        # A call larger than the cap would never fit. It starts alone, when all others have left the 60 seconds.
        wanted = tokens if self._counts_tokens else 1.0
        return max(now, self._leaves(self.used + wanted - self._room))

    def add(self, turn: Turn) -> None:
        if self._room == inf:
            return
        self._turns.append(turn)
        # The sum is kept: with 20,000 calls in a minute, adding them up would take longer than the rest.
        self.used += turn.tokens if self._counts_tokens else 1.0
        if self._counts_tokens:
            turn.counted_by = self

    def _drop(self, turn: Turn) -> None:
        self.used -= turn.tokens if self._counts_tokens else 1.0
        if turn.counted_by is self:
            turn.counted_by = None
        if not self._turns:
            self.used = 0.0  # sums of floats drift

    def _leaves(self, over: float) -> float:
        """Return when the oldest turns with ``over`` tokens will have left the 60 seconds."""
        leaves = -inf
        for turn in self._turns:
            if over <= 0:
                break
            over -= turn.tokens if self._counts_tokens else 1.0
            leaves = turn.started + self._span
        return leaves


class Limits:
    """Window, caps and pauses together.

    Args:
        most: most calls in flight.
        rpm: most calls in any minute; 0 means no cap.
        tpm: most tokens in any minute; 0 means no cap. A call's estimate counts until its ``tokens`` are corrected.
        patience: seconds after which calls to a server that refuses all of them end.
    """

    def __init__(self, most: int, rpm: float = 0.0, tpm: float = 0.0, patience: float = inf) -> None:
        self.window: CallWindow = CallWindow(most)
        self.patience: float = patience
        self._caps = [Cap(rpm), Cap(tpm, counts_tokens=True)]
        self._paused_until = -inf
        self._refused_since, self._refused_last = inf, -inf

    def opens(self, tokens: float, now: float) -> float:
        """Return when a call may start: ``now``, later, or infinity if another call has to end first."""
        if self.window.is_full:
            return inf
        return max(now, self._paused_until, *(cap.opens(tokens, now) for cap in self._caps))

    def start(self, tokens: float, now: float) -> Turn:
        """Start a call."""
        turn = Turn(now, tokens)
        self.window.in_flight += 1
        for cap in self._caps:
            cap.add(turn)
        return turn

    def leave(self) -> None:
        """Free the place of a call."""
        self.window.in_flight -= 1

    def answered(self) -> None:
        """Note that the server accepted a call."""
        self._refused_since = inf
        self.window.widen()

    def refused(self, turn: Turn, now: float, retry_after: float | None) -> None:
        """Note a refusal because of too many calls. No call starts for as long as the server asks, up to a limit."""
        goes_on = now - self._refused_last <= 2 * LONGEST_WAIT
        self._refused_since = min(self._refused_since, now) if goes_on else now
        self._refused_last = now
        self.window.halve(turn, now)
        if retry_after is not None and retry_after <= LONGEST_WAIT:
            self._paused_until = max(self._paused_until, now + retry_after)

    @property
    def gives_up(self) -> bool:
        """Return whether the server has refused all calls for longer than ``patience``."""
        return self._refused_last - self._refused_since > self.patience


# Protocols of a limiter and a budget. Both are in this process, or in one process for many.


class RateLimiter(Protocol):
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


class SpendLimit(Protocol):
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


@dataclass(eq=False, slots=True)
class _WaitingForRate:
    tokens: float
    turn: asyncio.Future[Turn]


class Limiter:
    """Starts calls when the limits allow it. The limits use the event loop's clock."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[_WaitingForRate] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    async def enter(self, tokens: float) -> Turn:
        """Wait for a turn. Who gets a turn must call ``leave``.

        Raises:
            ModelCallError: the server has refused all calls for too long.
        """
        mine = _WaitingForRate(tokens, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._let_in()
        try:
            return await mine.turn
        except asyncio.CancelledError:
            self._withdraw(mine)
            raise

    def leave(self, turn: Turn) -> None:  # noqa: ARG002 - caps look at a turn for a minute after its end
        """End a turn."""
        self._limits.leave()
        self._let_in()

    def answered(self) -> None:
        """Note that the server accepted a call."""
        self._limits.answered()

    def refused(self, turn: Turn, retry_after: float | None) -> None:
        """Note that the server refused a call because of too many."""
        self._limits.refused(turn, _now(), retry_after)

    def _withdraw(self, mine: _WaitingForRate) -> None:
        if mine.turn.done() and not mine.turn.cancelled() and not mine.turn.exception():
            self._limits.leave()  # it was started and cancelled at the same moment
        elif mine in self._waiting:
            self._waiting.remove(mine)
        self._let_in()

    def _let_in(self) -> None:
        """Start all calls that may start, and schedule this again for the next one."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        while self._waiting:
            now, first = _now(), self._waiting[0]
            opens = self._limits.opens(first.tokens, now)
            if first.turn.done():
                pass  # cancelled, and about to leave the queue
            elif self._limits.gives_up:
                first.turn.set_exception(self._refusal())
            elif opens > now:
                self._come_again(opens)
                return
            else:
                first.turn.set_result(self._limits.start(first.tokens, now))
            self._waiting.popleft()

    def _come_again(self, when: float) -> None:
        if when < inf:
            self._alarm = asyncio.get_running_loop().call_at(when, self._let_in)

    def _refusal(self) -> ModelCallError:
        return ModelCallError(
            f"The endpoint has refused every call as too many for {self._limits.patience:.0f} s, and is asked no more. "
            f"Run again later, or ask for less at once: --rag-concurrency, --rag-rpm, --rag-tpm."
        )


def _now() -> float:
    return asyncio.get_running_loop().time()


PARTS_OF_A_DOLLAR = 10**12
"""Parts of a USD. Sums are whole numbers, because floats would drift."""


@dataclass(eq=False, slots=True)
class _WaitingForBudget:
    parts: int
    admitted: asyncio.Future[None]


class Budget:
    """A limit in USD on the money spent and the money reserved for calls in flight."""

    def __init__(self, limit: float) -> None:
        self.limit = limit
        self._room = in_parts(limit)
        self._spent = self._aside = 0
        self._waiting: deque[_WaitingForBudget] = deque()

    @property
    def spent(self) -> float:
        """USD spent so far."""
        return self._spent / PARTS_OF_A_DOLLAR

    async def reserve(self, usd: float) -> None:
        """Reserve the highest cost of a call. Wait for calls in flight if they may become cheaper.

        Raises:
            BudgetError: the call could pass the limit, whatever the calls in flight will cost.
        """
        mine = _WaitingForBudget(in_parts(usd), asyncio.get_running_loop().create_future())
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

    def _withdraw(self, mine: _WaitingForBudget) -> None:
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


@dataclass(frozen=True)
class Money:
    """A budget, and the prices of its calls."""

    budget: SpendLimit
    prices: Prices


class Meter:
    """Caps and budget of the settings, shared by all models with this object.

    Args:
        settings: the settings of the run. Those of a worker have its share of the limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._limiters: dict[tuple[str, int, float], RateLimiter] = {}

    @cached_property
    def money(self) -> Money | None:
        """The budget; None without a limit.

        Raises:
            SettingsError: the price table cannot be used.
        """
        if not self._settings.budget:
            return None
        return Money(self._purse(self._settings.budget), prices_of(self._settings))

    def limiter(self, base_url: str, most: int = 0, rpm: float = 0.0) -> RateLimiter:
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

    def _purse(self, limit: float) -> SpendLimit:
        """Return a budget of ``limit`` USD."""
        return Budget(limit)

    def _line(self, server: str, window: int, rpm: float) -> RateLimiter:  # noqa: ARG002 - a shared counter needs it
        """Return a limiter for ``server``: at most ``window`` calls in flight, ``rpm`` a minute."""
        return Limiter(Limits(window, rpm, self._settings.tpm, patience=self._settings.deadline))


def _fewer(one: float, other: float) -> float:
    """Return the stricter of two caps; 0 means no cap."""
    return min(one, other) if one and other else one or other
