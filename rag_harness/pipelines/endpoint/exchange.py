"""One call over the network, within limits and budget, parsed while it arrives."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass
from time import perf_counter
from typing import Any
from urllib.parse import urlsplit

import httpx2

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.settings.endpoints import EndpointSpec
from rag_harness.core.types import Usage
from rag_harness.models.calls import (
    CALL,
    MOST_REPLY_BYTES,
    NO_USAGE,
    Call,
    PassingError,
    note_what_is_sent,
    upper_bound,
)
from rag_harness.models.http_transport import AiohttpTransport, MeteredTransport
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.throttling import Meter, Money, RateLimiter
from rag_harness.pipelines.endpoint.client import McpSession, StatusError, refused
from rag_harness.pipelines.endpoint.decoders import ResponseDecoder, decoder_of, parsed_json
from rag_harness.pipelines.endpoint.requests import Request


class ChargedTransport(MeteredTransport):
    """Sends a call when limiter and budget allow it.

    Args:
        inner: the transport to the service.
        limiter: caps, and the window of calls in flight.
        money: the budget; None without a limit.
        usd: the price of a call. None: the price table's price for the model of the request.
    """

    def __init__(self, inner: Any, limiter: RateLimiter, money: Money | None, usd: float | None) -> None:
        super().__init__(inner, limiter, money)
        self._usd = usd

    async def _admit(self, call: Call) -> None:
        await super()._admit(call)
        try:
            await note_what_is_sent()
        except BaseException:
            call.settle(NO_USAGE)
            self._end(call)
            raise

    def _call(self, content: bytes) -> Call:
        asked = json.loads(content) if content else {}
        if self._usd is None and isinstance(asked, dict) and "messages" in asked:
            return super()._call(content)
        most = upper_bound(content, {})
        return Call(most, lambda usage: (self._usd or 0.0) * usage.calls)


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

    async def answer(self, request: Request, document: Callable[[ResponseDecoder], Any]) -> WireAnswer:
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
            heard = decoder_of(self._spec, kind)
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
                response.extensions[CALL].settle(Usage())  # the price is per question
            heard = decoder_of(self._spec, response.headers.get("content-type", ""))
            content = await self._whole(response, heard)
            return response.headers, heard.document() if content.strip() else None
        finally:
            await response.aclose()

    async def _whole(self, response: httpx2.Response, heard: ResponseDecoder | None = None) -> bytes:
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

    async def _parts(self, response: httpx2.Response, heard: ResponseDecoder | None) -> AsyncIterator[bytes]:
        # A response closes itself at its end, and closing charges the call. The usage must be read before that.
        held = httpx2.Response(response.status_code, headers=response.headers, stream=_UnclosedStream(response))
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


class _UnclosedStream(httpx2.AsyncByteStream):
    """The bytes of a response, without closing it."""

    def __init__(self, response: httpx2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._response.stream:  # type: ignore[union-attr]
            yield part


async def _rest(coming: AsyncIterator[bytes], parts: list[bytes]) -> None:
    async for part in coming:
        parts.append(part)
