"""The last transport before the network: calls wait for their turn, and their tokens and costs are counted.

It is below the recordings, so replayed calls neither wait nor cost.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from time import perf_counter
from typing import Any

import httpx2

from rag_harness.models.allowed import Line
from rag_harness.models.call import CALL, NO_USAGE, Call, tokens, upper_bound
from rag_harness.models.chat.failures import retry_after
from rag_harness.models.meter import Money
from rag_harness.types import Usage
from rag_harness.work.deadline import paused


class MeteredTransport(httpx2.AsyncBaseTransport):
    """Sends requests through ``inner`` when limiter and budget allow.

    Args:
        inner: the transport to the model.
        limiter: caps, and the window of calls in flight.
        money: the budget; None without a limit.
    """

    def __init__(self, inner: Any, limiter: Line, money: Money | None = None) -> None:
        self._inner, self._limiter, self._money = inner, limiter, money

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        call = self._call(await request.aread())
        with paused():
            await self._admit(call)
        call.started = perf_counter()
        try:
            response: httpx2.Response = await self._inner.handle_async_request(request)
        except BaseException:
            call.settle(NO_USAGE)
            self._end(call)
            raise
        self._observe(call, response)
        return httpx2.Response(
            response.status_code,
            headers=response.headers,
            stream=_Leaving(response, lambda: self._end(call)),
            extensions={**response.extensions, CALL: call},
        )

    def _call(self, content: bytes) -> Call:
        asked = json.loads(content) if content else {}
        return Call(upper_bound(content, asked), lambda usage: self._cost(str(asked.get("model")), usage))

    def _cost(self, model: str, usage: Usage) -> float:
        if self._money is None:
            return 0.0
        if usage.usd is not None:
            return usage.usd
        return self._money.prices.cost(model, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens) or 0.0

    async def _admit(self, call: Call) -> None:
        if self._money is not None:
            await self._money.budget.reserve(call.highest_cost)
        try:
            call.turn = await self._limiter.enter(tokens(call.most))
        except BaseException:
            if self._money is not None:
                self._money.budget.settle(call.highest_cost, 0.0)
            raise

    def _observe(self, call: Call, response: httpx2.Response) -> None:
        wait = retry_after(response.headers)
        if response.status_code == 429 or (response.status_code == 503 and wait is not None):
            assert call.turn is not None
            self._limiter.refused(call.turn, wait)
        elif response.status_code < 500:
            self._limiter.answered()
        if response.status_code != 200 or "json" in response.headers.get("content-type", ""):
            call.settle(NO_USAGE)  # a refusal costs nothing; for a broken answer the highest cost counts

    def _end(self, call: Call) -> None:
        if call.turn is None:
            return
        if call.used is not None:
            call.turn.tokens = tokens(call.used)
        turn, call.turn = call.turn, None
        self._limiter.leave(turn)
        if self._money is not None:
            self._money.budget.settle(call.highest_cost, call.cost)

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Leaving(httpx2.AsyncByteStream):
    """The stream of a response. It reports its end once, however it ends."""

    def __init__(self, response: httpx2.Response, over: Callable[[], None]) -> None:
        self._response, self._over = response, over

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.stream:  # type: ignore[union-attr]
            yield part

    async def aclose(self) -> None:
        try:
            await self._response.aclose()
        finally:
            self._over()
