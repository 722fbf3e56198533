"""Caps, window and queue: never more calls than allowed, and every call gets a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.profiles import Price, Prices
from rag_harness.core.types import Completion, Message
from rag_harness.models.calls import upper_bound
from rag_harness.models.http_transport import AiohttpTransport, MeteredTransport
from rag_harness.models.openai_chat import OpenAIChat, SentParameters
from rag_harness.models.throttling import LONGEST_WAIT, Budget, CallWindow, Cap, Limiter, Limits, Meter, Money, Turn
from rag_harness.pipelines.parts import RunParts
from tests.unit.models.chat.test_openai_chat import MODEL, event, stream
from tests.unit.server import Reply, refusal, serving
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


# The transport before the wire: every call has its turn, gives it back, and is paid for once.

PRICES = Prices({MODEL: Price(1_000_000.0, 1_000_000.0)})
"""One USD a token: costs are counts."""
QUESTION = [Message("user", "How much?")]


def spent_on(*replies: Reply, budget: float, asked: int = 1, timeout: float = 20) -> tuple[Any, Any]:
    """Ask one after the other; return the budget and how each call ended."""
    money, limits = Budget(budget), Limits(4)

    async def session(url: str) -> list[Any]:
        from openai import AsyncOpenAI

        transport = MeteredTransport(AiohttpTransport(), Limiter(limits), Money(money, PRICES))
        http = httpx2.AsyncClient(transport=transport)
        async with AsyncOpenAI(base_url=url, api_key="x", max_retries=0, timeout=None, http_client=http) as client:
            chat = OpenAIChat(lambda: client, MODEL, SentParameters(max_tokens=64), timeout, wait=_at_once)
            ends = [await _end(chat.complete(QUESTION)) for _ in range(asked)]
        assert limits.window.in_flight == 0
        return ends

    with serving(*replies) as server:
        return money, asyncio.run(session(server.url))


async def _at_once(seconds: float) -> None:
    """Wait for nothing."""


async def _end(call: Awaitable[Completion]) -> Any:
    try:
        return await call
    except Exception as error:
        return error


def test_a_call_costs_what_it_used() -> None:
    money, (completion,) = spent_on(stream(), budget=1000)
    assert money.spent == 18
    assert completion.usage.prompt_tokens + completion.usage.completion_tokens == 18


def test_the_run_stops_before_the_call_that_could_pass_the_budget() -> None:
    money, ends = spent_on(stream(), budget=400, asked=30)
    called = [end for end in ends if isinstance(end, Completion)]
    refused = [end for end in ends if isinstance(end, BudgetError)]
    assert len(called) + len(refused) == 30
    assert 0 < len(called) < 30
    assert money.spent == 18 * len(called) <= 400
    assert isinstance(ends[-1], BudgetError)


@pytest.mark.parametrize(
    ("reply", "at_least"),
    [
        (refusal(500, "oops"), 0),
        (refusal(429, "slow down", retry_after="0"), 0),
        (replace(refusal(429, "slow down", retry_after="0"), length=5000), 0),
        (replace(refusal(500, "oops"), length=5000, reset=True), 0),
        (refusal(400, "too long"), 0),
        (refusal(200, "overloaded", "502"), 0),
        (Reply(hangs=True), 0),
        (Reply(reset=True, length=100), 0),
        # The server had begun to answer: nobody knows what it counts, so all that it could is counted.
        (stream(event("It costs "), length=-1), 64),
        (stream(event("It costs "), reset=True, length=10_000), 64),
        # It came to its end without its usage.
        (stream(event("It costs ", "stop")), 64),
    ],
    ids=[
        "500",
        "429",
        "429 cut short",
        "500 reset",
        "400",
        "200 with an error",
        "hangs",
        "reset",
        "closed early",
        "reset late",
        "no usage",
    ],
)
def test_what_a_failed_call_costs(reply: Reply, at_least: int) -> None:
    money, _ = spent_on(reply, budget=100_000, timeout=0.1 if reply.hangs else 20)
    assert money.spent >= at_least
    assert (money.spent == 0) is (at_least == 0)


def test_an_answer_that_is_no_answer_is_paid_for() -> None:
    money, (end,) = spent_on(stream(event(finish="stop") + event(usage=(11, 0))), budget=1000)
    assert "without any text" in str(end)
    assert money.spent == 11


def chat_of(server_url: str, **options: Any) -> Callable[..., Any]:
    settings = load_settings({"profile": "openrouter", "mode": "live", **options}, rootdir=Path("/nowhere"))
    return lambda: RunParts(replace(settings, chat_base_url=server_url)).chat()


def asked_at_once(server_url: str, times: int, **options: Any) -> list[Any]:
    async def session() -> list[Any]:
        chat = chat_of(server_url, **options)()
        try:
            return await asyncio.gather(*(_end(chat.complete(QUESTION)) for _ in range(times)))
        finally:
            await chat.aclose()

    return asyncio.run(session())


def test_calls_in_flight_are_bounded() -> None:
    with serving(stream(delay=0.05)) as server:
        ends = asked_at_once(server.url, 8, concurrency=2)
    assert server.most_in_flight == 2
    assert {end.text for end in ends} == {"It costs €29."}


def test_standing_in_line_does_not_count_as_the_call() -> None:
    with serving(stream(delay=0.05)) as server:
        ends = asked_at_once(server.url, 24, concurrency=1, timeout=1.0)  # the last one waits for 1.15 s
    assert [end.retries for end in ends] == [0] * 24
    last = max(ends, key=lambda end: end.waited_ms)
    assert last.waited_ms > 1000
    assert last.total_ms < last.waited_ms


def test_a_refusal_narrows_the_window_and_holds_everybody() -> None:
    # The second call lasts until the refusal has come, or a third would be let in before it.
    with serving(refusal(429, "slow", retry_after="0.4"), stream(delay=0.3), stream()) as server:
        ends = asked_at_once(server.url, 6, concurrency=2, timeout=20)
    assert sum(end.retries for end in ends) == 1
    assert all(end.text for end in ends)
    assert sum(end.waited_ms >= 360 for end in ends) >= 5


def test_a_wait_of_an_hour_ends_that_call_and_holds_nobody() -> None:
    with serving(refusal(429, "slow", retry_after="3600")) as server:
        ends = asked_at_once(server.url, 6, concurrency=2, timeout=20)
    assert [type(end) for end in ends] == [ModelCallError] * 6
    assert len(server.requests) == 6


def test_without_a_budget_nothing_is_priced() -> None:
    assert Meter(Settings()).money is None
    assert Meter(Settings(budget=2.0)).money is not None


@given(st.text(max_size=500), st.integers(1, 4))
def test_the_estimate_is_above_a_token_for_three_bytes(text: str, messages: int) -> None:
    content = text.encode("utf-8", "replace")
    bound = upper_bound(content, {"messages": [{}] * messages, "max_tokens": 7})
    assert bound.prompt_tokens >= len(content) / 3
    assert bound.completion_tokens == 7


# Money: never more than the budget, and nothing refused that could still fit.

_usd = st.floats(0, 1, allow_nan=False)


async def _spend(budget: Budget, calls: list[tuple[float, float, bool]]) -> list[str]:
    async def one(reserved: float, part: float, cancel: bool) -> str:
        waiting = asyncio.ensure_future(budget.reserve(reserved))
        await asyncio.sleep(part)
        if cancel and not waiting.done():
            waiting.cancel()
        try:
            await waiting
        except BudgetError:
            return "refused"
        except asyncio.CancelledError:
            return "cancelled"
        await asyncio.sleep(reserved + part)
        budget.settle(reserved, reserved * part)
        return "called"

    return await asyncio.gather(*(one(*call) for call in calls))


@settings(max_examples=120)
@given(st.floats(0.01, 3), st.lists(st.tuples(_usd, _usd, st.booleans()), max_size=20))
def test_what_is_spent_never_passes_the_budget(limit: float, calls: list[tuple[float, float, bool]]) -> None:
    budget = Budget(limit)
    ends = run(_spend(budget, calls))  # whoever is forgotten in line is a deadlock, which the loop reports
    cost = sum(reserved * part for (reserved, part, _), end in zip(calls, ends, strict=True) if end == "called")
    assert budget.spent <= limit + 1e-9
    assert budget.spent == pytest.approx(cost, abs=1e-9)
    for (reserved, _, _), end in zip(calls, ends, strict=True):
        # What was spent only grows: a call was refused for good only if it does not fit into what is left at the end.
        assert end != "refused" or budget.spent + reserved > limit - 1e-9


def test_a_call_waits_for_those_that_may_turn_out_cheaper() -> None:
    async def spend() -> float:
        budget = Budget(1.0)
        await budget.reserve(0.9)
        waiting = asyncio.ensure_future(budget.reserve(0.5))
        await asyncio.sleep(1)
        assert not waiting.done()
        budget.settle(0.9, 0.2)
        await waiting
        budget.settle(0.5, 0.5)
        return budget.spent

    assert run(spend()) == pytest.approx(0.7)


def test_a_call_that_can_never_fit_is_refused_at_once() -> None:
    async def spend() -> None:
        budget = Budget(1.0)
        await budget.reserve(0.9)
        budget.settle(0.9, 0.9)
        with pytest.raises(BudgetError, match=r"up to 0\.200000 USD, and 0\.900000 of 1\.000000 USD are spent"):
            await budget.reserve(0.2)
        await budget.reserve(0.1)

    run(spend())


def test_a_failed_call_costs_nothing() -> None:
    async def spend() -> None:
        budget = Budget(1.0)
        for _ in range(5):
            await budget.reserve(1.0)
            budget.settle(1.0, 0.0)
        assert budget.spent == 0

    run(spend())


def test_cancelled_in_the_breath_that_admits_it() -> None:
    async def spend() -> None:
        budget = Budget(1.0)
        await budget.reserve(1.0)
        gone = asyncio.ensure_future(budget.reserve(1.0))
        await asyncio.sleep(0)
        budget.settle(1.0, 0.0)
        gone.cancel()
        await asyncio.wait([gone])
        await budget.reserve(1.0)

    run(spend())
