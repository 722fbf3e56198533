"""A transport below the openai SDK that answers from recordings, and makes them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from time import perf_counter
from typing import Any

import httpx2

from rag_harness.errors import RecordingMissError
from rag_harness.recording.cassettes import TOTAL, TTFT, Cassettes, Recorded


class RecordingTransport(httpx2.AsyncBaseTransport):
    """Answers from ``cassettes``; asks ``inner`` for what is not there, if it may.

    Args:
        cassettes: the recordings of the profile.
        inner: the way to the model; None where this mode calls no model.
        keep: write what ``inner`` answered.
        ask_again: call even where there is a recording.
        refuse: why a miss is an error, with the command that records it.
    """

    def __init__(
        self, cassettes: Cassettes, inner: Any | None, keep: bool, ask_again: bool = False, refuse: str = ""
    ) -> None:
        self._cassettes, self._inner, self._keep = cassettes, inner, keep
        self._ask_again, self._refuse = ask_again, refuse

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        content = await request.aread()
        body = json.loads(content) if content else {}
        found = None if self._ask_again else self._cassettes.load(request.method, request.url.path, body)
        if found is not None:
            return _replayed(found)
        if self._inner is None:
            raise RecordingMissError(self._miss(body))
        started = perf_counter()
        response: httpx2.Response = await self._inner.handle_async_request(request)
        if not self._keep or response.status_code != 200:
            return response
        tee = _Tee(
            response, started, lambda said: self._cassettes.save(request.method, str(request.url), body, said), body
        )
        headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
        return httpx2.Response(200, headers=headers, stream=tee, extensions=response.extensions)

    def _miss(self, body: dict[str, Any]) -> str:
        question = str((body.get("messages") or [{}])[-1].get("content", "")).rpartition("Question: ")[2]
        asked = f"No recording of {body.get('model')} for {question[:60]!r}."
        return f"{asked} {self._cassettes.nearest(body)} {self._refuse}"

    async def aclose(self) -> None:
        if self._inner is not None:
            await self._inner.aclose()


class _Tee(httpx2.AsyncByteStream):
    """Passes a response on as it comes, and hands the whole of it over once it has come to its end."""

    def __init__(self, response: httpx2.Response, started: float, done: Any, body: dict[str, Any]) -> None:
        self._response, self._started, self._done, self._body = response, started, done, body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        parts: list[bytes] = []
        first, kept = None, False
        async for part in self._response.aiter_bytes():
            first = first or (perf_counter() if b'"content"' in part else None)
            parts.append(part)
            if not kept and b"[DONE]" in b"".join(parts[-2:]):
                # Before it is passed on: the SDK stops reading here and never asks for the end.
                kept = await self._keep(b"".join(parts), first)
            yield part
        if not kept:
            await self._keep(b"".join(parts), first)

    async def _keep(self, content: bytes, first: float | None) -> bool:
        """Hand over an answer that is whole; writing it waits for the disk, so it is done off the event loop."""
        if not _is_success(content, bool(self._body.get("stream"))):
            return False
        total = (perf_counter() - self._started) * 1000
        ttft = None if first is None else (first - self._started) * 1000
        kind = self._response.headers.get("content-type", "application/json")
        await asyncio.to_thread(self._done, Recorded(200, kind, content, total, ttft, self._body))
        return True

    async def aclose(self) -> None:
        await self._response.aclose()


def _is_success(content: bytes, streamed: bool) -> bool:
    """Only an answer that came to its end is kept; servers also send errors with status 200."""
    if b'"error"' in content[:200]:
        return False
    return b"data: [DONE]" in content if streamed else b'"choices"' in content


def _replayed(found: Recorded) -> httpx2.Response:
    headers = {"content-type": found.content_type, TOTAL: str(found.total_ms)}
    if found.ttft_ms is not None:
        headers[TTFT] = str(found.ttft_ms)
    return httpx2.Response(found.status, headers=headers, content=found.body)
