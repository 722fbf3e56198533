"""Limits of questions at once and of questions in the queue. Others must retry, and a client that leaves is removed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httpx
import pytest
from starlette.requests import Request

from rag_harness.service.database import Database
from rag_harness.service.middleware import AnsweringPlaces
from rag_harness.service.options import Options
from rag_harness.service.problems import ProblemError
from tests.unit.service.access.small_app import Asking, create_app

ASKED = {"query": "q"}


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.001)


class Client:
    """A client as its request shows it: there until it leaves."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def request(self) -> Request:
        return cast(Request, self)


def in_loop(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(10):
            await test()

    asyncio.run(run())


def test_as_many_wait_as_are_answered_and_the_next_comes_back(db: Database) -> None:
    app = create_app(db, Options("e1", concurrency=2))
    places = app.state.access.places

    async def run() -> None:
        async with Asking(app).client() as client:
            held = [asyncio.ensure_future(client.post("/slow", json=ASKED)) for _ in range(4)]
            await until(lambda: places.waiting == 2)
            refused = await client.post("/query", json=ASKED)
            assert (refused.status_code, refused.json()["code"]) == (503, "too_busy")
            assert refused.headers["retry-after"] == "1"
            assert (await client.get("/health")).status_code == 200
            app.state.goes_on.set()
            answers: list[httpx.Response] = await asyncio.gather(*held)
            assert [answer.text for answer in answers] == ["firstlast"] * 4
            assert (await client.post("/query", json=ASKED)).status_code == 200

    in_loop(run)
    assert (places.taken, places.waiting) == (0, 0)


def test_a_stream_holds_its_place_to_the_end(db: Database) -> None:
    app = create_app(db, Options("e1", concurrency=1))

    async def run() -> None:
        async with Asking(app).client() as client:
            streamed = asyncio.ensure_future(client.post("/slow", json=ASKED))
            await until(lambda: app.state.access.places.taken == 1)
            await asyncio.sleep(0.02)
            assert app.state.access.places.taken == 1
            app.state.goes_on.set()
            await streamed
        assert app.state.access.places.taken == 0

    in_loop(run)


def test_turns_are_in_the_order_of_arrival() -> None:
    async def run() -> None:
        places, order = AnsweringPlaces(1), []

        async def asks(number: int) -> None:
            async with places.one(Client().request()):
                order.append(number)
                await asyncio.sleep(0)

        async with places.one(Client().request()):
            waiting = asyncio.ensure_future(asks(1))
            await until(lambda: places.waiting == 1)
        await asyncio.gather(asks(2), waiting)
        assert order == [1, 2]

    in_loop(run)


def test_who_leaves_while_waiting_takes_no_place() -> None:
    async def run() -> None:
        places, client = AnsweringPlaces(1), Client()

        async def asks() -> None:
            async with places.one(client.request()):
                raise AssertionError("nobody is there")

        async with places.one(Client().request()):
            waiting = asyncio.ensure_future(asks())
            await until(lambda: places.waiting == 1)
            client.left.set()
            with pytest.raises(ProblemError, match="left"):
                await waiting
            assert places.waiting == 0
        assert places.taken == 0

    in_loop(run)


@pytest.mark.parametrize("turn_comes_too", [False, True])
def test_a_cancelled_wait_leaves_no_place_taken(turn_comes_too: bool) -> None:
    async def run() -> None:
        places = AnsweringPlaces(1)

        async def asks() -> None:
            async with places.one(Client().request()):
                raise AssertionError("was cancelled")

        async with places.one(Client().request()):
            waiting = asyncio.ensure_future(asks())
            await until(lambda: places.waiting == 1)
            if not turn_comes_too:
                waiting.cancel()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (places.taken, places.waiting) == (0, 0)

    in_loop(run)
