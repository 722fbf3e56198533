"""When the next call may start: pure rules on a clock that is handed in, in seconds. Nothing here waits.

The window of calls in flight follows additive increase, multiplicative decrease (Chiu and Jain 1989, as in TCP).
"""

from __future__ import annotations

from collections import deque
from math import inf

LONGEST_WAIT = 60.0
"""Seconds. A server that asks for more is not waited for: the run has to end in bounded time."""
_MINUTE = 60.0


class Turn:
    """A call that was let in: when, and the tokens that it is taken to use, until it is known what it has used."""

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


class Window:
    """How many calls may be in flight: at most ``most``, half as many after a refusal, one more a round trip."""

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
        """Shrink, but once a round trip: calls that started before the last time say nothing new."""
        if turn.started > self._shrunk:
            self.size, self._shrunk = max(1.0, self.size / 2), now


class Cap:
    """At most ``per_minute`` in any 60 seconds; 0 is no cap. Below 1, one in as many minutes as it takes."""

    def __init__(self, per_minute: float, counts_tokens: bool = False) -> None:
        self._span = _MINUTE if per_minute >= 1 else _MINUTE / (per_minute or inf)
        self._room = inf if per_minute == 0 else float(max(1, int(per_minute)))
        self._counts_tokens = counts_tokens
        self._turns: deque[Turn] = deque()
        self.used: float = 0.0

    def opens(self, tokens: float, now: float) -> float:
        """Return when there is room for a call of ``tokens``: ``now``, or later."""
        if self._room == inf:
            return now
        while self._turns and self._turns[0].started + self._span <= now:
            self._drop(self._turns.popleft())
        # What is larger than the cap would never fit: it goes alone, when all others have left the span.
        wanted = tokens if self._counts_tokens else 1.0
        return max(now, self._leaves(self.used + wanted - self._room))

    def add(self, turn: Turn) -> None:
        if self._room == inf:
            return
        self._turns.append(turn)
        # A sum that is kept: with 20,000 calls in a minute, adding them up takes longer than asking for a turn.
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
        """Return when the oldest turns that fill ``over`` have left the span."""
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
        most: calls in flight.
        rpm: calls in any minute; 0 is no cap.
        tpm: tokens in any minute; 0 is no cap. A call's estimate counts until its turn's ``tokens`` are corrected.
        patience: seconds for which a server may refuse everything before it is asked no more.
    """

    def __init__(self, most: int, rpm: float = 0.0, tpm: float = 0.0, patience: float = inf) -> None:
        self.window: Window = Window(most)
        self.patience: float = patience
        self._caps = [Cap(rpm), Cap(tpm, counts_tokens=True)]
        self._paused_until = -inf
        self._refused_since, self._refused_last = inf, -inf

    def opens(self, tokens: float, now: float) -> float:
        """Return when a call may start: ``now``, a later time, or infinity while only a call's end makes room."""
        if self.window.is_full:
            return inf
        return max(now, self._paused_until, *(cap.opens(tokens, now) for cap in self._caps))

    def start(self, tokens: float, now: float) -> Turn:
        """Let a call in."""
        turn = Turn(now, tokens)
        self.window.in_flight += 1
        for cap in self._caps:
            cap.add(turn)
        return turn

    def leave(self) -> None:
        """Take back the place of a call."""
        self.window.in_flight -= 1

    def answered(self) -> None:
        """The server took a call."""
        self._refused_since = inf
        self.window.widen()

    def refused(self, turn: Turn, now: float, retry_after: float | None) -> None:
        """The server said: too many. Nobody starts until it asked to be called again, if that is not too long."""
        goes_on = now - self._refused_last <= 2 * LONGEST_WAIT
        self._refused_since = min(self._refused_since, now) if goes_on else now
        self._refused_last = now
        self.window.halve(turn, now)
        if retry_after is not None and retry_after <= LONGEST_WAIT:
            self._paused_until = max(self._paused_until, now + retry_after)

    @property
    def gives_up(self) -> bool:
        """Whether the server has refused everything for longer than there is patience."""
        return self._refused_last - self._refused_since > self.patience
