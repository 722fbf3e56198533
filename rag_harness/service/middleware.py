"""The middleware of an application, and bodies of requests, checked before any parser sees them."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from secrets import token_hex
from time import monotonic
from typing import Any, TypeVar

import numpy as np
from anyio.to_thread import run_sync
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request as RequestsRequest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_harness.core.cache import NO_ROOM
from rag_harness.core.log import log
from rag_harness.service.app_state import MIB, Options
from rag_harness.service.database import StateError
from rag_harness.service.problems import ProblemError, no_room, shortened

MOST_LEVELS = 64
_PAIR = re.compile(rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}")
_HALF = re.compile(rb"\\u[dD][89a-fA-F]")
_STEP = np.zeros(256, dtype=np.int8)
_STEP[[ord("["), ord("{")]] = 1
_STEP[[ord("]"), ord("}")]] = -1


def check_json(body: bytes) -> None:
    """Check the bytes of a JSON text before they are parsed.

    Raises:
        ProblemError: 400 if they nest deeper than ``MOST_LEVELS``, are not UTF-8, escape half a character, or have a
            number that is not finite.
    """
    if not _is_utf8(body):
        raise ProblemError(400, "not_utf8", "The body is not JSON in UTF-8. Send it as UTF-8.")
    plain = _without_escapes(body)
    if levels_exceed(plain, MOST_LEVELS):
        raise ProblemError(
            400, "too_deep", f"The body nests lists and objects deeper than {MOST_LEVELS} levels. Send it flatter."
        )
    if b"\\u" in plain and _HALF.search(_PAIR.sub(b"", plain)):
        raise ProblemError(
            400, "half_a_character", "The body escapes half a character (a lone surrogate). Send whole ones."
        )
    if fault := _number_fault(body):
        raise ProblemError(400, "not_finite", f"In the body {shortened(fault)}: NaN, infinite or too large.")


def is_flat(text: str) -> bool:
    """Return whether JSON nests no deeper than ``MOST_LEVELS``."""
    return not levels_exceed(_without_escapes(text.encode(errors="replace")), MOST_LEVELS)


def fault_of_value(value: Any, path: str) -> str:
    """Return what is wrong in a value that was parsed from checked bytes; empty if nothing is."""
    for where, found in _leaves(value, path):
        if isinstance(found, float) and not math.isfinite(found):
            return f"{where} is not a finite number"
        if isinstance(found, str) and not _is_whole(found):
            return f"{where} has half a character (a lone surrogate)"
    return ""


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= each <= "\udfff" for each in text)


def _number_fault(body: bytes) -> str:
    """Return the number that is not finite: Python's parser takes NaN, Infinity and 1e999. Empty if there is none."""
    odd: list[float] = []

    def number(text: str) -> float:
        found = float(text)
        if not math.isfinite(found):
            odd.append(found)
        return found

    try:
        value = json.loads(body, parse_float=number, parse_constant=number)
    except ValueError:
        return ""  # it is not JSON; the parser will report it
    return fault_of_value(value, "") if odd else ""


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield each value that holds no others, and each name in an object, with its path: ``inputs.weights[3]``."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield path, name
            yield from _leaves(each, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        for place, each in enumerate(value):
            yield from _leaves(each, f"{path}[{place}]")
    else:
        yield path, value


def _is_utf8(body: bytes) -> bool:
    try:
        body.decode()
    except UnicodeDecodeError:
        return False
    # UTF-16 would hide brackets from this check but not from the parser. In UTF-8, no byte of a JSON text is 0.
    return b"\0" not in body


def _without_escapes(body: bytes) -> bytes:
    """Return the text without escaped backslashes and quotes. Each quote that is left begins or ends a string."""
    return body.replace(b"\\\\", b"__").replace(b'\\"', b"__")


def levels_exceed(plain: bytes, most: int) -> bool:
    """Return whether brackets outside strings nest deeper than ``most``. Linear: 1 MB takes milliseconds."""
    if plain.count(b"[") + plain.count(b"{") <= most:
        return False
    found = np.frombuffer(plain, dtype=np.uint8)
    in_string = np.bitwise_xor.accumulate(found == ord('"'))
    steps = np.where(in_string, np.int8(0), _STEP[found])
    return int(np.cumsum(steps, dtype=np.int32).max()) > most


# Reads the body of a request: counts it, times it and checks it. Its own headers are not trusted.

UPLOADS = frozenset({"/ingest"})
"""Paths that take files. Every other body is JSON."""
_AROUND_A_FILE = 64 << 10
"""How many bytes of a form may be something other than the file: other fields, boundaries."""
_LARGE = 64 << 10
"""From how many bytes on JSON is checked in a thread of its own."""
_DRAINED, _DRAIN_S = MIB, 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How slowly a body may come: ``silence`` seconds without a byte, and at least ``rate`` bytes a second in all."""

    silence: float = 10.0
    rate: float = 1024.0


class Bodies:
    """Middleware that limits how much a route reads and how long it waits. A route gets JSON only whole and checked."""

    def __init__(self, app: ASGIApp, pace: Pace | None = None) -> None:
        self._app = app
        self._pace = pace or Pace()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or not _has_body(scope):
            await self._app(scope, receive, send)
            return
        body = _Body(scope, receive, self._pace)
        await self._app(scope, body.receive, _Leaving(body, send).send)


class _Body:
    def __init__(self, scope: Scope, receive: Receive, pace: Pace) -> None:
        options: Options = scope["app"].state.access.options
        self._is_upload = scope["path"] in UPLOADS
        self._most = options.upload + _AROUND_A_FILE if self._is_upload else options.body
        self._declared = _declared(scope)
        self._receive, self._pace = receive, pace
        self._began: float | None = None
        self._came = 0
        self.complete = False

    async def receive(self) -> Message:
        """Return the next part of an upload, or a whole body of another kind; later calls return the next message.

        Raises:
            ProblemError: 413 if the body is too large, 408 if it is too slow, 400 if it is not JSON that a parser
                should see.
        """
        if self.complete:
            return await self._receive()
        if self._declared > self._most:
            raise self._too_large()
        return await self._part() if self._is_upload else await self._whole()

    async def drain(self) -> None:
        """Read a little of an unwanted body: a client that is still sending may not read the answer yet."""
        came = 0
        try:
            async with asyncio.timeout(_DRAIN_S):
                while not self.complete and came < _DRAINED:
                    came += len(self._seen(await self._receive()).get("body", b""))
        except TimeoutError:
            return

    async def _whole(self) -> Message:
        parts = []
        while not self.complete:
            message = await self._part()
            if message["type"] != "http.request":
                return message
            parts.append(message.get("body", b""))
        body = b"".join(parts)
        if len(body) > _LARGE:  # a megabyte takes tenths of a second, and other requests wait meanwhile
            await run_sync(check_json, body)
        else:
            check_json(body)
        return {"type": "http.request", "body": body, "more_body": False}

    async def _part(self) -> Message:
        patience = self._patience()
        if patience <= 0:  # bytes that have already come would not time out
            raise _too_slow()
        try:
            async with asyncio.timeout(patience):
                message = self._seen(await self._receive())
        except TimeoutError:
            raise _too_slow() from None
        self._came += len(message.get("body", b""))
        if self._came > self._most:
            raise self._too_large()
        return message

    def _patience(self) -> float:
        """Return for how many seconds to wait for the next byte."""
        now = monotonic()
        if self._began is None:
            self._began = now
        due = self._began + self._pace.silence + self._came / self._pace.rate
        return min(self._pace.silence, due - now)

    def _seen(self, message: Message) -> Message:
        self.complete = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    def _too_large(self) -> ProblemError:
        detail = f"The body is larger than the {self._most:,} bytes that are taken here. Send less."
        return ProblemError(413, "too_large", detail, extra={"limit": self._most})


class _Leaving:
    """Sends an answer. If the body was not read to its end, the connection is closed afterwards."""

    def __init__(self, body: _Body, send: Send) -> None:
        self._body, self._send = body, send
        self._closes = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and not self._body.complete:
            self._closes = True
            message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
        if not self._closes or message["type"] != "http.response.body" or message.get("more_body", False):
            await self._send(message)
            return
        # The whole answer is sent before the rest of the body is dropped and the connection is closed.
        await self._send({**message, "more_body": True})
        await self._body.drain()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


def _too_slow() -> ProblemError:
    return ProblemError(408, "too_slow", "The body came too slowly. Send it again, faster.")


def _has_body(scope: Scope) -> bool:
    names = {name for name, _ in scope["headers"]}
    return b"transfer-encoding" in names or _declared(scope) > 0


def _declared(scope: Scope) -> int:
    """Return the number in Content-Length; 0 if it cannot be read."""
    said = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(said) if said.isdigit() and len(said) < 20 else 0


# Headers, errors as problem+json, limits of questions at once, and clients that leave.

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
