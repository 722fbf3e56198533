"""Limits how many questions are answered at once. As many again may wait; further ones are refused."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.requests import Request

from rag_harness.service.disconnecting import client_left, gone_from
from rag_harness.service.problems import ProblemError

_COME_BACK_S = 1


class AnsweringPlaces:
    """The places of one server.

    Args:
        most: the number of places, and how many requests may wait for one.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.taken: int = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return len(self._waiting)

    @asynccontextmanager
    async def one(self, request: Request) -> AsyncIterator[None]:
        """Hold a place. A client that leaves while it waits gives up its turn.

        Args:
            request: the one that is answered; its body was read to its end.

        Raises:
            ProblemError: 503 if too many wait already.
        """
        if self.taken < self.most:
            self.taken += 1
        elif self.waiting < self.most:
            await self._wait(request)
        else:
            raise _full(self.most)
        try:
            yield
        finally:
            self._leave()

    async def _wait(self, request: Request) -> None:
        turn = asyncio.get_running_loop().create_future()
        gone = asyncio.ensure_future(gone_from(request))
        self._waiting.append(turn)
        try:
            await asyncio.wait({turn, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not turn.done():
                raise client_left()
        except BaseException:
            self._give_up(turn)
            raise
        finally:
            gone.cancel()

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        # The turn may have come at the moment when it was given up.
        if turn.done():
            self._leave()
        else:
            self._waiting.remove(turn)

    def _leave(self) -> None:
        """Give the place to the request that waits longest. If none waits, the place is free."""
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self.taken -= 1


async def a_place(request: Request) -> AsyncIterator[None]:
    """Hold a place until the answer, or its whole stream, is sent. A dependency of routes that answer questions."""
    async with request.app.state.access.places.one(request):
        yield


def _full(most: int) -> ProblemError:
    detail = f"{most} questions are being answered, and {most} wait. Ask again in {_COME_BACK_S} s."
    return ProblemError(503, "too_busy", detail, {"Retry-After": str(_COME_BACK_S)})
