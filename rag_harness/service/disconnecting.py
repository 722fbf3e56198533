"""Nobody waits for an answer any more: then nobody works on it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")
CLIENT_LEFT = 499
"""What nginx logs of a client that left; nobody receives it."""


def client_left() -> ProblemError:
    """Return what ends the work on a request whose client left."""
    return ProblemError(CLIENT_LEFT, "client_left", "The client left.")


async def while_waited_for(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Return what ``work`` returns; where the client leaves before, end it: its model call is closed."""
    task, gone = asyncio.ensure_future(work), asyncio.ensure_future(gone_from(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise client_left()
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def gone_from(request: Request) -> None:
    """Return once the client has left; the request's body was read to its end."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
