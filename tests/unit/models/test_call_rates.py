"""Caps, window and queue: never more calls than allowed, and every call gets a turn."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError
from rag_harness.models.throttling import LONGEST_WAIT, CallWindow, Cap, Limiter, Limits, Turn
from tests.unit.virtual_time import run


def test_the_window_halves_once_a_round_trip_and_grows_by_one() -> None:
    window = CallWindow(16)
    window.halve(Turn(0.0), now=1.0)
    window.halve(Turn(0.5), now=1.1)  # of the same round: it says nothing new
    assert window.size == 8
    window.halve(Turn(1.2), now=2.0)
    assert window.size == 4
    for _ in range(5):
        window.widen()
    assert 5 <= window.size < 6


@given(st.integers(1, 50), st.lists(st.booleans(), max_size=200))
def test_the_window_stays_between_one_and_the_most(most: int, refusals: list[bool]) -> None:
    window = CallWindow(most)
    for now, refused in enumerate(refusals):
        window.halve(Turn(now - 0.5), now) if refused else window.widen()
        assert 1 <= window.size <= most


def test_below_one_a_minute() -> None:
    cap = Cap(0.5)
    cap.add(Turn(0.0))
    assert cap.opens(0, 60.0) == 120.0
    assert cap.opens(0, 120.0) == 120.0


def test_no_cap_keeps_nothing() -> None:
    cap = Cap(0)
    cap.add(Turn(0.0, 1e9))
    assert cap.opens(1e9, 0.0) == 0.0


def test_tokens_are_settled() -> None:
    cap = Cap(100, counts_tokens=True)
    turn = Turn(0.0, 90.0)
    cap.add(turn)
    assert cap.opens(50, 1.0) == 60.0
    turn.tokens = 40.0
    assert cap.opens(50, 1.0) == 1.0


def test_a_call_larger_than_the_cap_goes_alone() -> None:
    cap = Cap(100, counts_tokens=True)
    assert cap.opens(1000, 0.0) == 0.0
    cap.add(Turn(0.0, 1000.0))
    assert cap.opens(1, 59.0) == 60.0


def test_a_pause_is_kept_and_a_long_one_is_not() -> None:
    limits = Limits(4)
    turn = limits.start(0, 0.0)
    limits.refused(turn, 1.0, 20.0)
    assert limits.opens(0, 2.0) == 21.0
    limits.refused(turn, 2.0, LONGEST_WAIT + 1)
    assert limits.opens(0, 30.0) == 30.0


def test_patience_ends_where_everything_is_refused() -> None:
    limits = Limits(4, patience=100)
    for now in (0.0, 50.0, 100.0):
        limits.refused(Turn(now), now, None)
        assert not limits.gives_up
    limits.refused(Turn(101.0), 101.0, None)
    assert limits.gives_up
    limits.answered()
    assert not limits.gives_up


def test_refusals_far_apart_are_no_streak() -> None:
    limits = Limits(4, patience=100)
    limits.refused(Turn(0.0), 0.0, None)
    limits.refused(Turn(1000.0), 1000.0, None)
    assert not limits.gives_up


@dataclass(frozen=True)
class Caller:
    """Comes at ``at``, leaves the line after ``patience``, calls for ``takes``; ``refusal`` is a Retry-After."""

    at: float
    takes: float
    tokens: int
    used: int
    refusal: float | None
    patience: float


@dataclass
class Seen:
    """What happened: starts, as (when, tokens), and who came through."""

    starts: list[tuple[float, Turn]] = field(default_factory=list)
    through: int = 0
    cancelled: int = 0


_seconds = st.floats(0, 90, allow_nan=False).map(lambda each: round(each, 2))
_callers = st.lists(
    st.builds(
        Caller,
        at=_seconds,
        takes=_seconds,
        tokens=st.integers(0, 400),
        used=st.integers(0, 400),
        refusal=st.none() | st.floats(0, 59, allow_nan=False),
        patience=st.just(inf) | _seconds,
    ),
    max_size=25,
)


class Watched(Limits):
    """Notes calls in flight and size of the window at each start; a moment later a refusal may have halved it."""

    def __init__(self, most: int, rpm: float, tpm: float) -> None:
        super().__init__(most, rpm, tpm)
        self.noted: list[tuple[int, int]] = []

    def start(self, tokens: float, now: float) -> Turn:
        turn = super().start(tokens, now)
        self.noted.append((self.window.in_flight, int(self.window.size)))
        return turn


async def _call(line: Limiter, caller: Caller, seen: Seen) -> None:
    await asyncio.sleep(caller.at)
    turn = await line.enter(caller.tokens)
    seen.starts.append((turn.started, turn))
    try:
        await asyncio.sleep(caller.takes)
        if caller.refusal is None:
            line.answered()
        else:
            line.refused(turn, caller.refusal)
        turn.tokens = min(caller.used, caller.tokens)
    finally:
        line.leave(turn)
    seen.through += 1


async def _all(limits: Limits, callers: list[Caller]) -> Seen:
    line, seen = Limiter(limits), Seen()

    async def patient(caller: Caller) -> None:
        work = asyncio.ensure_future(_call(line, caller, seen))
        await asyncio.wait({work}, timeout=None if caller.patience == inf else caller.at + caller.patience)
        work.cancel()
        try:
            await work
        except asyncio.CancelledError:
            seen.cancelled += 1

    await asyncio.gather(*map(patient, callers))
    return seen


@settings(max_examples=150)
@given(_callers, st.integers(1, 6), st.sampled_from([0, 0.4, 1, 3, 10]), st.sampled_from([0, 50, 500]))
def test_everybody_is_let_in_and_never_too_many(callers: list[Caller], most: int, rpm: float, tpm: int) -> None:
    limits = Watched(most, rpm, tpm)
    seen = run(_all(limits, callers))  # a turn that is lost is a deadlock, which the loop reports
    assert seen.through + seen.cancelled == len(callers)
    assert limits.window.in_flight == 0
    assert all(in_flight <= size <= most for in_flight, size in limits.noted), limits.noted
    starts = sorted(when for when, _ in seen.starts)
    for start in starts if rpm else ():
        span = 60.0 if rpm >= 1 else 60.0 / rpm
        assert sum(start <= other < start + span for other in starts) <= max(1, int(rpm))


@settings(max_examples=50)
@given(st.lists(st.integers(1, 120), min_size=1, max_size=20), st.sampled_from([50, 100]))
def test_tokens_a_minute_are_never_more_than_the_cap(tokens: list[int], tpm: int) -> None:
    limits = Limits(4, tpm=tpm)
    seen = run(_all(limits, [Caller(0.0, 1.0, each, each, None, inf) for each in tokens]))
    for start, first in seen.starts:
        inside = [turn.tokens for when, turn in seen.starts if start <= when < start + 60]
        assert sum(inside) <= tpm or (inside == [first.tokens] and first.tokens > tpm)


def test_first_come_first_served() -> None:
    async def come() -> list[int]:
        line, order = Limiter(Limits(1)), []

        async def one(n: int) -> None:
            turn = await line.enter(0)
            order.append(n)
            await asyncio.sleep(1)
            line.leave(turn)

        await asyncio.gather(*map(one, range(5)))
        return order

    assert run(come()) == [0, 1, 2, 3, 4]


def test_a_server_that_refuses_everything_is_asked_no_more() -> None:
    async def come() -> list[str]:
        line, said = Limiter(Limits(4, patience=30)), []

        async def one() -> None:
            try:
                for _ in range(4):
                    turn = await line.enter(0)
                    line.refused(turn, 10.0)
                    line.leave(turn)
            except ModelCallError as error:
                said.append(str(error))

        await asyncio.gather(*(one() for _ in range(50)))
        assert asyncio.get_running_loop().time() <= 60
        return said

    assert "has refused every call as too many for 30 s" in run(come())[0]


@pytest.mark.parametrize("how", ["in line", "let in"])
def test_a_caller_that_is_cancelled_frees_its_place(how: str) -> None:
    async def come() -> None:
        limits = Limits(1)
        line = Limiter(limits)
        turn = await line.enter(0)
        gone, stays = asyncio.ensure_future(line.enter(0)), asyncio.ensure_future(line.enter(0))
        await asyncio.sleep(0)
        if how == "let in":
            line.leave(turn)  # its turn has come, and it is cancelled before it can see that
        gone.cancel()
        await asyncio.wait([gone])
        if how == "in line":
            line.leave(turn)
        await stays
        assert limits.window.in_flight == 1

    run(come())


@given(st.lists(st.tuples(st.floats(0, 200), st.integers(0, 50), st.integers(0, 50)), max_size=60))
def test_the_sum_that_a_cap_keeps_is_that_of_its_turns(calls: list[tuple[float, int, int]]) -> None:
    rate, cap, turns = Cap(7), Cap(100, counts_tokens=True), list[Turn]()
    for at, most, used in sorted(calls):
        rate.opens(most, at + 5)  # it forgets a turn before the other does
        cap.opens(most, at)
        turn = Turn(at, most)
        for each in (rate, cap):
            each.add(turn)
        turns.append(turn)
        turns[used % len(turns)].tokens = used  # some of them long after they have left
        assert cap.used == sum(each.tokens for each in turns if each.started + 60 > at)
        assert rate.used == sum(each.started + 60 > at + 5 for each in turns)
