"""The headers of every answer: the id of its trace, and protections against misuse in browsers."""

from __future__ import annotations

from secrets import token_hex

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rag_harness.files.log import log
from rag_harness.service.access.errors import response_of
from rag_harness.service.problems import ProblemError

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
