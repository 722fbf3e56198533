"""HTTP transport to models over aiohttp, which waits for limits, counts tokens and costs, and bounds replies."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from time import monotonic, perf_counter
from typing import Any

import aiohttp
import httpx2
from yarl import URL

from rag_harness.core.concurrency import paused
from rag_harness.core.types import Usage
from rag_harness.models.calls import (
    CALL,
    IS_OVER,
    MOST_REPLY_BYTES,
    NO_USAGE,
    PACKINGS,
    Call,
    Decompressor,
    retry_after,
    tokens,
    upper_bound,
)
from rag_harness.models.recording.playback import proxy_of
from rag_harness.models.throttling import Money, RateLimiter

# The network transport: httpx2's interface over aiohttp's connections.
#
# With 64 calls in flight, a call through httpx2's own pool costs 1.8 ms of processor time, mostly for checking all
# other connections. Through aiohttp's pool it costs a quarter of that.

_NOT_ADDED = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")
"""Headers that aiohttp would add where the request has none."""
_PACKED = (b"content-encoding", b"content-length")
"""Headers of a reply that are about its compressed form."""


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """Sends requests over connections that stay open. The caller limits their number and time.

    Proxies come from the environment. Certificates are checked as in httpx2, and errors are httpx2's. Replies are
    decompressed.

    Args:
        server: the server's name, for messages; empty: its host.
        most_bytes: most bytes of a decompressed reply; a longer one raises ModelOutputError.
    """

    def __init__(self, server: str = "", most_bytes: int = MOST_REPLY_BYTES) -> None:
        self._server, self._most_bytes = server, most_bytes
        self._proxies: dict[tuple[str, str], str | None] = {}

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        if "accept-encoding" in request.headers:
            request.headers["accept-encoding"] = PACKINGS
        with _errors_of_httpx2(request, httpx2.ConnectError):
            response = await self._session.request(
                request.method,
                URL(str(request.url), encoded=True),
                headers=request.headers.multi_items(),
                data=content or None,
                skip_auto_headers=_NOT_ADDED,
                allow_redirects=False,
                proxy=self._proxy(request.url.scheme, request.url.host),
                ssl=self._certificates if request.url.scheme == "https" else True,
            )
        try:
            packing = response.headers.get("content-encoding", "")
            unpacked = Decompressor(self._server or request.url.host, packing, self._most_bytes)
        except BaseException:
            response.close()
            raise
        return httpx2.Response(
            response.status,
            headers=[each for each in response.raw_headers if each[0].lower() not in (_PACKED if packing else ())],
            stream=_Body(response, request, unpacked),
            extensions={
                "http_version": b"HTTP/1.1",
                "reason_phrase": (response.reason or "").encode(),
                IS_OVER: response.content.at_eof,
            },
        )

    @cached_property
    def _session(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    @cached_property
    def _certificates(self) -> Any:
        return httpx2.create_ssl_context()

    def _proxy(self, scheme: str, host: str) -> str | None:
        """Return the environment's proxy, None for this machine. aiohttp would use a thread for that in each call."""
        if (scheme, host) not in self._proxies:
            self._proxies[scheme, host] = proxy_of(scheme, host)
        return self._proxies[scheme, host]

    async def aclose(self) -> None:
        if "_session" in vars(self):
            await self._session.close()


class _Body(httpx2.AsyncByteStream):
    """The bytes of a response while they arrive. Closing them before their end closes the connection."""

    def __init__(self, response: aiohttp.ClientResponse, request: httpx2.Request, unpacked: Decompressor) -> None:
        self._response, self._request, self._unpacked = response, request, unpacked

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _errors_of_httpx2(self._request, httpx2.ReadError):
            async for part in self._response.content.iter_any():
                for number, piece in enumerate(self._unpacked.feed(part)):
                    if number:
                        await asyncio.sleep(0)  # a part may decompress to much, so other calls and clocks get a turn
                    yield piece

    async def aclose(self) -> None:
        if self._response.content.at_eof():
            self._response.release()
        else:
            self._response.close()


@contextmanager
def _errors_of_httpx2(request: httpx2.Request, broken: type[httpx2.TransportError]) -> Iterator[None]:
    """Raise httpx2's errors: ``broken`` where a connection fails, a more exact one where aiohttp knows it."""
    try:
        yield
    except asyncio.TimeoutError as error:
        raise httpx2.TimeoutException(str(error) or "timed out", request=request) from error
    except (aiohttp.ClientPayloadError, aiohttp.ServerDisconnectedError) as error:
        raise httpx2.RemoteProtocolError(str(error), request=request) from error
    except aiohttp.ClientProxyConnectionError as error:
        raise httpx2.ProxyError(str(error), request=request) from error
    except aiohttp.InvalidURL as error:
        raise httpx2.UnsupportedProtocol(str(error), request=request) from error
    except (aiohttp.ClientError, OSError) as error:
        raise broken(str(error) or type(error).__name__, request=request) from error
    except ValueError as error:
        raise httpx2.DecodingError(str(error), request=request) from error


# The last transport before the network: calls wait for their turn, and their tokens and costs are counted.
#
# It is below the recordings, so replayed calls neither wait nor cost.


class MeteredTransport(httpx2.AsyncBaseTransport):
    """Sends requests through ``inner`` when limiter and budget allow.

    Args:
        inner: the transport to the model.
        limiter: caps, and the window of calls in flight.
        money: the budget; None without a limit.
    """

    def __init__(self, inner: Any, limiter: RateLimiter, money: Money | None = None) -> None:
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


def bounds(server: str, seconds: float, most_bytes: int = MOST_REPLY_BYTES) -> dict[str, Any]:
    """Return arguments for an ``httpx2.Client`` that limit it.

    The client's own timeout is for each read. A server that sends single bytes would never reach it.

    Args:
        server: the server's name, for messages.
        seconds: time from a reply's headers to its last byte; ReadTimeout is raised after it.
        most_bytes: most bytes of a reply after decompression; a longer one raises ModelOutputError.
    """

    def bound(response: httpx2.Response) -> None:
        unpacked = Decompressor(server, response.headers.pop("content-encoding", ""), most_bytes)
        response.stream = _Bounded(response, unpacked, seconds)

    return {"event_hooks": {"response": [bound]}, "headers": {"accept-encoding": PACKINGS}}


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, response: httpx2.Response, unpacked: Decompressor, seconds: float) -> None:
        assert isinstance(response.stream, httpx2.SyncByteStream)
        self._stream, self._request = response.stream, response.request
        self._unpacked, self._seconds = unpacked, seconds

    def __iter__(self) -> Iterator[bytes]:
        until = monotonic() + self._seconds
        try:
            for part in self._stream:
                for piece in self._unpacked.feed(part):
                    if monotonic() > until:
                        raise httpx2.ReadTimeout(f"no whole answer within {self._seconds:g} s", request=self._request)
                    yield piece
        except ValueError as error:
            raise httpx2.DecodingError(str(error), request=self._request) from error

    def close(self) -> None:
        self._stream.close()
