"""The limiter: a queue of calls that wait for their turn, first come, first served."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from math import inf

from rag_harness.errors import ModelCallError
from rag_harness.models.call_rates import Limits, Turn


@dataclass(eq=False, slots=True)
class _Waiting:
    tokens: float
    turn: asyncio.Future[Turn]


class Limiter:
    """Starts calls when the limits allow it. The limits use the event loop's clock."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._waiting: deque[_Waiting] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    async def enter(self, tokens: float) -> Turn:
        """Wait for a turn. Who gets a turn must call ``leave``.

        Raises:
            ModelCallError: the server has refused all calls for too long.
        """
        mine = _Waiting(tokens, asyncio.get_running_loop().create_future())
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

    def _withdraw(self, mine: _Waiting) -> None:
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
