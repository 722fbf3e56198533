"""Ends the work on an answer when its client has left."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.service.problems import ProblemError

if TYPE_CHECKING:
    from starlette.requests import Request

_T = TypeVar("_T")
CLIENT_LEFT = 499
"""The status that nginx logs for a client that left; no client receives it."""


def client_left() -> ProblemError:
    """Return the problem that ends the work for a client that left."""
    return ProblemError(CLIENT_LEFT, "client_left", "The client left.")


async def while_waited_for(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """Return what ``work`` returns. If the client leaves before, end the work and close its model call."""
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
    """Return when the client has left. The request's body must have been read to its end."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
