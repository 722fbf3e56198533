"""The network transport: httpx2's interface over aiohttp's connections.

With 64 calls in flight, a call through httpx2's own pool costs 1.8 ms of processor time, mostly for checking all other
connections. Through aiohttp's pool it costs a quarter of that.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import aiohttp
import httpx2
from yarl import URL

from rag_harness.models.call import IS_OVER
from rag_harness.models.proxies import proxy_of
from rag_harness.models.unpacked import MOST_REPLY_BYTES, PACKINGS, Unpacked

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
            unpacked = Unpacked(self._server or request.url.host, packing, self._most_bytes)
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

    def __init__(self, response: aiohttp.ClientResponse, request: httpx2.Request, unpacked: Unpacked) -> None:
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
