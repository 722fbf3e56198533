"""Limits for httpx2's synchronous client: bytes of a reply, and its total time."""

from __future__ import annotations

from collections.abc import Iterator
from time import monotonic
from typing import Any

import httpx2

from rag_harness.models.unpacked import MOST_REPLY_BYTES, PACKINGS, Unpacked


def bounds(server: str, seconds: float, most_bytes: int = MOST_REPLY_BYTES) -> dict[str, Any]:
    """Return arguments for an ``httpx2.Client`` that limit it.

    The client's own timeout is for each read. A server that sends single bytes would never reach it.

    Args:
        server: the server's name, for messages.
        seconds: time from a reply's headers to its last byte; ReadTimeout is raised after it.
        most_bytes: most bytes of a reply after decompression; a longer one raises ModelOutputError.
    """

    def bound(response: httpx2.Response) -> None:
        unpacked = Unpacked(server, response.headers.pop("content-encoding", ""), most_bytes)
        response.stream = _Bounded(response, unpacked, seconds)

    return {"event_hooks": {"response": [bound]}, "headers": {"accept-encoding": PACKINGS}}


class _Bounded(httpx2.SyncByteStream):
    def __init__(self, response: httpx2.Response, unpacked: Unpacked, seconds: float) -> None:
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
