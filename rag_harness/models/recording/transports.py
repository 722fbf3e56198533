"""Record and replay in httpx and httpx2: replayed responses, recorded responses, and a patch of both libraries.

Both libraries have the same classes with the same names, so the library is an argument.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib import import_module
from inspect import getclosurevars
from types import ModuleType
from typing import Any
from unittest.mock import patch

from rag_harness.models.recording.cassettes import Recorded
from rag_harness.models.recording.playback import AnswerListener, Playback, headers_of
from rag_harness.models.recording.unrecorded import recorded_call

_SHORT = 2**16
"""Most bytes of a request and its answer that the event loop writes itself: a millisecond or two."""
Skips = Callable[[Any], bool]
"""Returns whether a request is neither recorded nor replayed."""


def replayed(library: ModuleType, found: Recorded) -> Any:
    """Return a recorded answer as a response."""
    return library.Response(found.status, headers=headers_of(found), content=found.body)


def heard(library: ModuleType, response: Any, listener: AnswerListener, playback: Playback) -> Any:
    """Return ``response``. A success is stored while the client reads it, if the mode stores answers."""
    if not playback.keep or not 200 <= response.status_code < 300:
        return response
    listener.to(response.status_code, response.headers.get("content-type", ""))
    # The parts are already decoded.
    gone = {"content-encoding", "content-length"} if "content-encoding" in response.headers else set()
    headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in gone]
    tee = _tee(library)(response, listener, playback)
    return library.Response(response.status_code, headers=headers, stream=tee, extensions=response.extensions)


@cache
def _tee(library: ModuleType) -> Any:
    class Tee(library.SyncByteStream, library.AsyncByteStream):  # type: ignore[name-defined,misc]
        """Passes a response on while it arrives, and saves it before the client sees its end."""

        def __init__(self, response: Any, listener: AnswerListener, playback: Playback) -> None:
            self._response, self._listener, self._playback = response, listener, playback

        def __iter__(self) -> Iterator[bytes]:
            for part in self._response.iter_bytes():
                self._keep(self._listener.hear(part))
                yield part
            self._keep(self._listener.end())

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for part in self._response.aiter_bytes():
                await self._keep_aside(self._listener.hear(part))
                yield part
            await self._keep_aside(self._listener.end())

        def _keep(self, answer: Recorded | None) -> None:
            if answer is not None:
                self._save(answer)

        async def _keep_aside(self, answer: Recorded | None) -> None:
            """Write at once, so that no kill loses it, and sync in a thread, so that the event loop does not wait.

            A long answer is written in the thread, too. Other loops than asyncio's wait.
            """
            if answer is None:
                return
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self._save(answer)
                return
            if len(answer.body) + len(self._listener.asked.content) > _SHORT:
                await asyncio.to_thread(self._save, answer)
            else:
                await asyncio.to_thread(self._playback.begin(self._listener.asked, answer))

        def _save(self, answer: Recorded) -> None:
            self._playback.save(self._listener.asked, answer)

        def close(self) -> None:
            self._response.close()

        async def aclose(self) -> None:
            await self._response.aclose()

    return Tee


@contextmanager
def patched(playback: Playback, skips: Skips) -> Iterator[None]:
    """Record and replay every call through httpx and httpx2 in the whole process, during the block."""
    # At its import, vcrpy saves the methods that it restores after each cassette. So import it before patching.
    import_module("vcr.patch")
    with ExitStack() as stack:
        for library in _installed():
            blocking, waiting = library.HTTPTransport, library.AsyncHTTPTransport
            handler = _blocking(library, blocking.handle_request, playback, skips)
            stack.enter_context(patch.object(blocking, "handle_request", handler))
            handler = _waiting(library, waiting.handle_async_request, playback, skips)
            stack.enter_context(patch.object(waiting, "handle_async_request", handler))
        yield


def _installed() -> Iterator[ModuleType]:
    for name in ("httpx2", "httpx"):
        try:
            yield import_module(name)
        except ImportError:
            continue


def _blocking(library: ModuleType, below: Any, playback: Playback, skips: Skips) -> Any:
    def handle_request(self: Any, request: Any) -> Any:
        if skips(request):
            return below(self, request)
        asked = playback.cassettes.asked(request.method, str(request.url), request.read(), request.headers)
        found = playback.find(asked)
        if found is not None:
            return replayed(library, found)
        if _plays(below, request):
            return below(self, request)
        playback.allow(asked)
        listener = AnswerListener(asked)
        with recorded_call():
            response = _real(below)(self, request)
        return heard(library, response, listener, playback)

    return handle_request


def _waiting(library: ModuleType, below: Any, playback: Playback, skips: Skips) -> Any:
    async def handle_async_request(self: Any, request: Any) -> Any:
        if skips(request):
            return await below(self, request)
        content = await request.aread()
        asked = playback.cassettes.asked(request.method, str(request.url), content, request.headers)
        found = playback.find(asked)
        if found is not None:
            return replayed(library, found)
        if _plays(below, request):
            return await below(self, request)
        playback.allow(asked)
        listener = AnswerListener(asked)
        with recorded_call():
            response = await _real(below)(self, request)
        return heard(library, response, listener, playback)

    return handle_async_request


def _cassette(handler: Any) -> Any:
    """Return the open vcrpy cassette below, e.g. pytest-recording's, or None."""
    cassette = getclosurevars(handler).nonlocals.get("cassette") if hasattr(handler, "__wrapped__") else None
    return cassette if hasattr(cassette, "can_play_response_for") else None


def _plays(handler: Any, request: Any) -> bool:
    """Return whether vcrpy's own cassette has the answer. Then vcrpy gives it."""
    from vcr.request import Request

    cassette = _cassette(handler)
    if cassette is None:
        return False
    asked = Request(request.method, str(request.url), request.content, request.headers)
    return bool(cassette.can_play_response_for(asked))


def _real(handler: Any) -> Any:
    """Return the handler without vcrpy, which would read a whole stream first and record the call, too."""
    return handler if _cassette(handler) is None else handler.__wrapped__
