"""The middleware of an application.

Headers, errors as problem+json, limits of questions at once, and clients that leave.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from secrets import token_hex
from typing import Any, TypeVar

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request as RequestsRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_harness.core.cache import NO_ROOM
from rag_harness.core.log import log
from rag_harness.service.database import StateError
from rag_harness.service.problems import ProblemError, no_room, shortened
from rag_harness.service.request_bodies import Bodies, Pace

# From errors to problem+json. No traceback and no path is sent, and texts of others are shortened.

PROBLEM = "application/problem+json"
_MOST_ERRORS = 20
_KNOWN = {
    404: ("no_such_path", "There is nothing at this path. GET /openapi.json lists what there is."),
    405: ("no_such_method", "This path does not know this method. GET /openapi.json lists what it knows."),
    400: ("unreadable", "The request's body cannot be read as what its Content-Type says."),
}


EXPECTED = (ProblemError, RequestValidationError, HTTPException, StateError)
"""Errors that :func:`problem_of` knows. All others are unforeseen."""


def answer_errors(app: FastAPI) -> None:
    """Have an application answer errors in problem+json. Unforeseen errors are left to :class:`Unforeseen`."""
    for kind in EXPECTED:
        app.add_exception_handler(kind, _answered)


def response_of(problem: ProblemError) -> Response:
    """Return the response for a problem."""
    content = json.dumps(problem.body(), ensure_ascii=True)
    return Response(content, problem.status, problem.headers, PROBLEM)


def problem_of(error: Exception) -> ProblemError:
    """Return the problem that a client is told for one of ``EXPECTED``."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return _refused(error)
    return ProblemError(503, "state_unusable", str(error), {"Retry-After": "10"})


async def _answered(_: Request, error: Exception) -> Response:
    return response_of(problem_of(error))


def _invalid(error: RequestValidationError) -> ProblemError:
    errors = [_told(each) for each in error.errors()[:_MOST_ERRORS]]
    where = ", ".join(dict.fromkeys(each["field"] for each in errors)) or "it"
    # FastAPI parses a body only if Content-Type says JSON. Otherwise it passes on the bytes.
    said_so = " It was not said to be JSON: send Content-Type: application/json." if type(error.body) is bytes else ""
    detail = shortened(f"The request does not fit: see {where}. GET /openapi.json says what is expected.") + said_so
    return ProblemError(422, "invalid_request", detail, extra={"errors": errors})


def _told(error: Mapping[str, Any]) -> dict[str, str]:
    """Return the field and the reason, without the value that was sent. A field name that was sent is cut short."""
    return {"field": shortened(".".join(str(part) for part in error["loc"])), "why": shortened(str(error["msg"]))}


def _refused(error: HTTPException) -> ProblemError:
    """Return the problem for an error of the framework. If the cause is a problem of ours, return that one."""
    cause = error.__cause__
    if isinstance(cause, ProblemError):
        return cause
    if isinstance(cause, OSError) and cause.errno in NO_ROOM:
        return no_room()  # uploads are spooled to the folder for temporary files, which is full
    code, detail = _KNOWN.get(error.status_code, ("refused", shortened(str(error.detail))))
    return ProblemError(error.status_code, code, detail, dict(error.headers or {}))


# The headers of every answer: the id of its trace, and protections against misuse in browsers.

# A page sets its own policy, which is kept. No CORS header is ever sent, so pages of other sites cannot read answers.
_ALWAYS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Headers:
    """The outermost middleware. It gives each request a trace id, and each answer its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = scope.setdefault("state", {})
        state["trace_id"] = token_hex(16)

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in {**_ALWAYS, **state.get("told", {}), "X-Request-ID": state["trace_id"]}.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, with_headers)


class Unforeseen:
    """Middleware for unforeseen errors: logs them, and tells the client a number that is also in the log."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        begun = False

        async def watched(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if scope["type"] != "http":
                raise
            trace_id = scope["state"]["trace_id"]
            problem = problem_of_any(error, trace_id)
            if begun:
                raise  # half an answer must not look like a whole one, so the connection is broken off
            await response_of(problem)(scope, receive, send)


def problem_of_any(error: Exception, trace_id: str) -> ProblemError:
    """Return what a client is told of any error. An unforeseen one is logged with its traceback."""
    if isinstance(error, ProblemError):
        return error
    log.error("Request %s failed", trace_id, exc_info=error, extra={"trace_id": trace_id})
    detail = "Something went wrong here that nobody foresaw. The server's log has it under this trace_id."
    return ProblemError(500, "unforeseen", detail, extra={"trace_id": trace_id})


# Puts everything that stands before an application's routes there, in the right order.


def install(app: FastAPI, pace: Pace | None = None) -> None:
    """Have an application answer errors, limit bodies and set headers.

    Before the first request, ``app.state.access`` must be an ``Access``, and every route a ``GuardedRoute``.
    """
    answer_errors(app)
    # The middleware that is added last is the outermost.
    app.add_middleware(Bodies, pace=pace)
    app.add_middleware(Unforeseen)
    app.add_middleware(Headers)


_T = TypeVar("_T")
CLIENT_LEFT = 499
"""The status that nginx logs for a client that left; no client receives it."""


def client_left() -> ProblemError:
    """Return the problem that ends the work for a client that left."""
    return ProblemError(CLIENT_LEFT, "client_left", "The client left.")


async def while_waited_for(request: RequestsRequest, work: Coroutine[Any, Any, _T]) -> _T:
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


async def gone_from(request: RequestsRequest) -> None:
    """Return when the client has left. The request's body must have been read to its end."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


# Limits how many questions are answered at once. As many again may wait; further ones are refused.

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
    async def one(self, request: RequestsRequest) -> AsyncIterator[None]:
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

    async def _wait(self, request: RequestsRequest) -> None:
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


async def a_place(request: RequestsRequest) -> AsyncIterator[None]:
    """Hold a place until the answer, or its whole stream, is sent. A dependency of routes that answer questions."""
    async with request.app.state.access.places.one(request):
        yield


def _full(most: int) -> ProblemError:
    detail = f"{most} questions are being answered, and {most} wait. Ask again in {_COME_BACK_S} s."
    return ProblemError(503, "too_busy", detail, {"Retry-After": str(_COME_BACK_S)})
