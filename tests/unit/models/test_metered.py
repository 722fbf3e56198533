"""The transport before the wire: every call has its turn, gives it back, and is paid for once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import BudgetError, ModelCallError
from rag_harness.core.settings import Settings
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.settings.profiles import Price, Prices
from rag_harness.core.types import Completion, Message
from rag_harness.models.call_context import upper_bound
from rag_harness.models.http_transport import AiohttpTransport, MeteredTransport
from rag_harness.models.openai_chat import OpenAIChat, SentParameters
from rag_harness.models.throttling import Budget, Limiter, Limits, Meter, Money
from rag_harness.pipelines.parts import RunParts
from tests.unit.models.chat.test_openai import MODEL, event, stream
from tests.unit.server import Reply, refusal, serving

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
