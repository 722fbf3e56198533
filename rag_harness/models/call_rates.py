"""Rules for when the next call may start. Callers pass the time in seconds; nothing here waits.

The window of calls in flight uses additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP).
"""

from __future__ import annotations

from collections import deque
from math import inf

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
    """At most ``per_minute`` in any 60 seconds; 0 is no cap. A value below 1 means one call in several minutes."""

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
        rpm: most calls in any minute; 0 is no cap.
        tpm: most tokens in any minute; 0 is no cap. A call's estimate counts until its ``tokens`` are corrected.
        patience: seconds after which a server that refuses all calls is given up.
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
