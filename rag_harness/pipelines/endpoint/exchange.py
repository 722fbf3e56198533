"""One call over the network: sent when limiter and budget allow, parsed while it arrives, with its times."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import httpx2

from rag_harness.errors import ModelOutputError
from rag_harness.models.call import CALL, Call
from rag_harness.models.chat.failures import PassingError
from rag_harness.models.meter import Meter
from rag_harness.models.recording.cassettes import Recorded
from rag_harness.models.unpacked import MOST_REPLY_BYTES
from rag_harness.models.wire import AiohttpTransport
from rag_harness.pipelines.endpoint.charged import ChargedTransport
from rag_harness.pipelines.endpoint.heard import Heard, heard_of
from rag_harness.pipelines.endpoint.mcp import McpSession
from rag_harness.pipelines.endpoint.parsing import parsed_json
from rag_harness.pipelines.endpoint.refusals import StatusError, refused
from rag_harness.pipelines.endpoint.request import Request
from rag_harness.settings.endpoint_spec import EndpointSpec
from rag_harness.types import Usage

LONGEST_END = 0.1
"""Seconds that a complete stream may take to close."""


@dataclass(frozen=True)
class WireAnswer:
    """An answer from the network: its JSON, and the whole response as a recording keeps it."""

    document: Any
    recorded: Recorded


class Exchange:
    """The connection to one service.

    Args:
        spec: the service.
        meter: caps and budget of the run.
        usage: reads the usage from an answer.

    Attributes:
        has_answered: whether the service has ever responded.
    """

    def __init__(self, spec: EndpointSpec, meter: Meter, usage: Callable[[Any], Usage]) -> None:
        self._spec, self._usage = spec, usage
        address = urlsplit(spec.url)
        # Where a variable holds the server's address, the variable's name identifies the server.
        server = f"{address.scheme}://{address.netloc}" if address.netloc else spec.url
        limiter = meter.limiter(server, spec.concurrency, spec.rpm)
        wire = AiohttpTransport(spec.name, MOST_REPLY_BYTES)
        self._transport = ChargedTransport(wire, limiter, meter.money, spec.usd_per_call)
        self._session = McpSession(self._post) if spec.kind == "mcp" else None
        self.has_answered = False

    async def answer(self, request: Request, document: Callable[[Heard], Any]) -> WireAnswer:
        """Send ``request`` and return the answer, with its JSON read by ``document``.

        Raises:
            PassingError: the call failed, but a retry may succeed.
            CriticalError, ModelCallError: the call was refused.
            ModelOutputError: the answer cannot be parsed, or is too long.
        """
        if self._session is not None:
            request = await self._session.joined(request)
        response = await self._sent(request)
        call, kind = response.extensions[CALL], response.headers.get("content-type", "")
        try:
            if self._spec.usd_per_call is not None:
                call.settle(Usage(calls=1))
            heard = heard_of(self._spec, kind)
            content = await self._whole(response, heard)
            found = document(heard)
            self._settle(call, self._usage(found))
        finally:
            await response.aclose()
        total, first = perf_counter() - call.started, heard.first
        ttft = None if first is None else (first - call.started) * 1000
        return WireAnswer(found, Recorded(response.status_code, kind, content, total * 1000, ttft))

    def _settle(self, call: Call, used: Usage) -> None:
        # The price is by tokens, but the answer does not state its tokens: the highest possible cost stays charged.
        if self._spec.usd_per_call is not None or used.prompt_tokens or used.completion_tokens:
            call.settle(used)

    async def _sent(self, request: Request) -> httpx2.Response:
        """Return the response, before its body, if its status is a success."""
        headers, content = list(request.headers), request.content or None
        response = await self._transport.handle_async_request(
            httpx2.Request(request.method or self._spec.method, request.url, headers=headers, content=content)
        )
        self.has_answered = True
        if response.is_success:
            return response
        try:
            raise self._refusal(request, response, await self._whole(response))
        finally:
            await response.aclose()

    def _refusal(self, request: Request, response: httpx2.Response, content: bytes) -> Exception:
        if self._session is not None and response.status_code == 404 and self._session.forget(request):
            return PassingError(StatusError("404: the server has forgotten the session", response))
        if request.talk is not None:
            request.talk.check_not_lost(_json_or_none(content), response.status_code)
        return refused(response, content.decode("utf-8", "replace"), self._spec.name, self._spec.where)

    async def in_its_session(self, request: Request) -> Request:
        """Return a request as it is sent: in the session of the turns before it, or in one that is begun here.

        Raises:
            SessionLostError: the service may have forgotten the session.
            ModelOutputError: the id of the session cannot be used.
            PassingError, CriticalError, ModelCallError: as ``answer``, where a session is opened.
        """
        talk = request.talk
        if talk is None:
            return request
        if not talk.is_first:
            talk.check_may_ask()
            return request
        if request.opens is None:
            return request.in_session(talk.sessions.chosen(talk.query))
        _, reply = await self._post(request.opens)
        return request.in_session(talk.sessions.opened(reply))

    async def _post(self, request: Request) -> tuple[httpx2.Headers, Any]:
        """Send a request that opens a session, and return the response's headers and JSON; None without a body."""
        response = await self._sent(request)
        try:
            if self._spec.usd_per_call is not None:
                response.extensions[CALL].settle(Usage())  # the price is that of a question
            heard = heard_of(self._spec, response.headers.get("content-type", ""))
            content = await self._whole(response, heard)
            return response.headers, heard.document() if content.strip() else None
        finally:
            await response.aclose()

    async def _whole(self, response: httpx2.Response, heard: Heard | None = None) -> bytes:
        parts = list[bytes]()
        coming = self._parts(response, heard)
        async for part in coming:
            parts.append(part)
            if heard is not None and heard.is_done:
                # A connection is reused only after reading to its end, but some servers leave the stream open.
                with suppress(asyncio.TimeoutError, httpx2.HTTPError):
                    await asyncio.wait_for(_rest(coming, parts), LONGEST_END)
                break
        return b"".join(parts)

    async def _parts(self, response: httpx2.Response, heard: Heard | None) -> AsyncIterator[bytes]:
        # A response closes itself at its end, and closing charges the call. The usage must be read before that.
        held = httpx2.Response(response.status_code, headers=response.headers, stream=_Held(response))
        async for part in held.aiter_bytes():
            if heard is not None:
                heard.add(part)
            yield part

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


def _json_or_none(content: bytes) -> Any:
    try:
        return parsed_json(content, "", "")
    except ModelOutputError:
        return None


class _Held(httpx2.AsyncByteStream):
    """The bytes of a response, without closing it."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.stream:  # type: ignore[union-attr]
            yield part


async def _rest(coming: AsyncIterator[bytes], parts: list[bytes]) -> None:
    async for part in coming:
        parts.append(part)
