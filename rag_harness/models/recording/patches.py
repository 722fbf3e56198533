"""Patches of HTTP libraries for record and replay, and calls that cannot be recorded."""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache, wraps
from importlib import import_module
from inspect import getclosurevars
from io import BytesIO
from types import ModuleType
from typing import Any
from unittest.mock import patch
from urllib.parse import urlsplit

from rag_harness.core.settings import Settings, access_of
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.cassettes import OWN
from rag_harness.models.recording.playback import (
    LOOPBACK,
    AnswerListener,
    AppCassettes,
    AppPlayback,
    Playback,
    headers_of,
    internet_address,
    no_app_answers,
    threads_of_apps,
)
from rag_harness.models.recording.scrubbing import CleanedRequest, Scrub, secrets_of

# Calls of an app that cannot be recorded: sockets that no patched HTTP library opens, gRPC, processes.
#
# Python's audit events report sockets and processes of every library. A hook cannot be removed, so it is added once and
# counts only while an app is made or answers.

_recorded: ContextVar[bool] = ContextVar("recorded_call", default=False)
_GRPC = ("_UnaryUnaryMultiCallable", "_UnaryStreamMultiCallable", "_StreamUnaryMultiCallable")


@contextmanager
def recorded_call() -> Iterator[None]:
    """Count nothing in the block: its calls are recorded."""
    token = _recorded.set(True)
    try:
        yield
    finally:
        _recorded.reset(token)


class UnrecordedCalls:
    """Counts the calls of this process, by kind."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._is_counted: Callable[[], bool] = lambda: False
        self._is_exempt: Callable[[str, int], bool] = lambda *_: False
        self._is_installed = False

    @contextmanager
    def counted(self, is_counted: Callable[[], bool], is_exempt: Callable[[str, int], bool]) -> Iterator[None]:
        """Count in the block.

        Args:
            is_counted: returns whether an app runs here.
            is_exempt: returns whether connections to a host and port are left alone.
        """
        if not self._is_installed:
            sys.addaudithook(self._hook)
            self._is_installed = True
        self._is_counted, self._is_exempt = is_counted, is_exempt
        try:
            with self._grpc():
                yield
        finally:
            self._is_counted = lambda: False

    def taken(self) -> dict[str, int]:
        """Return the counts since the last time."""
        counts, self._counts = self._counts, Counter()
        return dict(counts)

    def _note(self, what: str) -> None:
        if self._is_counted() and not _recorded.get():
            self._counts[what] += 1

    def _hook(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "socket.connect":
            address = internet_address(*args)
            if address is not None and not self._is_exempt(*address):
                self._note(f"connection to {address[0]}:{address[1]}")
        elif event in ("subprocess.Popen", "os.system"):
            self._note("process")

    @contextmanager
    def _grpc(self) -> Iterator[None]:
        channel = sys.modules.get("grpc._channel")
        with ExitStack() as stack:
            for name in _GRPC:
                kind = getattr(channel, name, None)
                if kind is not None:
                    stack.enter_context(patch.object(kind, "__call__", self._noting(kind.__call__)))
            yield

    def _noting(self, function: Any) -> Any:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._note("call by gRPC")
            return function(*args, **kwargs)

        return call


unrecorded_calls = UnrecordedCalls()
"""Those of this process. Audit hooks stay, so there is one object."""


def unrecorded_said(counts: dict[str, int]) -> str:
    """Return counts in words: ``4 processes, 2 connections to db:5432``."""
    return ", ".join(f"{n:,} {_plural(what) if n > 1 else what}" for what, n in sorted(counts.items()))


def _plural(what: str) -> str:
    first, _, rest = what.partition(" ")
    return f"{first}{'es' if first.endswith('s') else 's'}{f' {rest}' if rest else ''}"


# Record and replay in httpx and httpx2: replayed responses, recorded responses, and a patch of both libraries.
#
# Both libraries have the same classes with the same names, so the library is an argument.

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
        """Passes a response on while it arrives, and saves it before the client gets its end."""

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


# Record and replay in urllib3, which requests and botocore call by, and in aiohttp.
#
# What is recorded is read to its end before the client sees it, as vcrpy does.

OtherSkips = Callable[[str], bool]
"""Returns whether a request to an address is neither recorded nor replayed."""


@contextmanager
def other_transports_patched(playback: Playback, skips: OtherSkips) -> Iterator[None]:
    """Record and replay every call through urllib3 and aiohttp in the whole process, during the block.

    vcrpy has imported those that are installed.
    """
    with ExitStack() as stack:
        if "urllib3" in sys.modules:
            stack.enter_context(_urllib3_patched(playback, skips))
        if "aiohttp" in sys.modules:
            stack.enter_context(_aiohttp_patched(playback, skips))
        yield


@contextmanager
def _urllib3_patched(playback: Playback, skips: OtherSkips) -> Iterator[None]:
    from urllib3 import HTTPConnectionPool, HTTPResponse

    below = HTTPConnectionPool.urlopen

    def response(found: Recorded, method: str, url: str, options: dict[str, Any]) -> HTTPResponse:
        return HTTPResponse(
            BytesIO(found.body),
            headers_of(found),
            found.status,
            reason="",
            preload_content=options.get("preload_content", True),
            decode_content=False,
            request_method=method,
            request_url=url,
        )

    def urlopen(self: Any, method: str, url: str, body: Any = None, headers: Any = None, **options: Any) -> Any:
        port = f":{self.port}" if self.port else ""
        address = url if "://" in url else f"{self.scheme}://{self.host}{port}{url}"
        if skips(address):
            return below(self, method, url, body, headers, **options)
        body = _read(body)
        asked = playback.cassettes.asked(method, address, body or b"", _lower(headers or self.headers))
        found = playback.find(asked)
        if found is not None:
            return response(found, method, url, options)
        playback.allow(asked)
        listener = AnswerListener(asked)
        with recorded_call():
            came = below(
                self, method, url, body, headers, **{**options, "preload_content": False, "decode_content": True}
            )
        content = came.read(decode_content=True)
        came.release_conn()
        kept = _kept(playback, listener, came.status, came.headers.get("content-type", ""), content)
        if kept is not None:
            return response(kept, method, url, options)
        gone = {"content-encoding", "content-length", "transfer-encoding"}
        there = {name: value for name, value in came.headers.items() if name.lower() not in gone}
        said = response(Recorded(came.status, "", content, 0.0, None), method, url, options)
        said.headers.clear()
        said.headers.update(there)
        said.reason = came.reason
        return said

    with patch.object(HTTPConnectionPool, "urlopen", urlopen):
        yield


def _lower(headers: Mapping[str, Any]) -> dict[str, str]:
    return {name.lower(): str(value) for name, value in headers.items()}


def _read(body: Any) -> Any:
    """Return the body of a request as bytes, so that it can be looked at and sent."""
    if body is None or isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    if hasattr(body, "read"):
        return _read(body.read())
    return b"".join(_read(part) for part in body)


def _kept(playback: Playback, listener: AnswerListener, status: int, kind: str, content: bytes) -> Recorded | None:
    """Store an answer that is a success, and return it as a replay will give it; None where it is not stored."""
    if not playback.keep or not 200 <= status < 300:
        return None
    listener.to(status, kind)
    answer = listener.hear(content) or listener.end()
    if answer is not None:
        playback.save(listener.asked, answer)
    return answer


@contextmanager
def _aiohttp_patched(playback: Playback, skips: OtherSkips) -> Iterator[None]:
    from aiohttp import ClientSession
    from vcr.stubs.aiohttp_stubs import vcr_request

    below = ClientSession._request

    async def real(self: Any, method: str, url: Any, **options: Any) -> Any:
        with nullcontext() if skips(str(url)) else recorded_call():
            return await below(self, method, url, **options)

    handler = vcr_request(_Cassette(playback, skips), real)
    with patch.object(ClientSession, "_request", handler):
        yield


class _Cassette:
    """The recordings as vcrpy's stub of aiohttp asks for them."""

    write_protected = False

    def __init__(self, playback: Playback, skips: OtherSkips) -> None:
        self._playback, self._skips = playback, skips
        self._asked: dict[int, AnswerListener] = {}

    def filter_request(self, request: Any) -> bool:
        """Return whether the answer to a request is stored."""
        return not self._skips(request.uri)

    def can_play_response_for(self, request: Any) -> bool:
        """Return whether a request is recorded; raise where it may not be called."""
        if self._skips(request.uri):
            return False
        asked = self._cleaned(request)
        if self._playback.find(asked) is not None:
            return True
        self._playback.allow(asked)
        self._asked[id(request)] = AnswerListener(asked)
        return False

    def play_response(self, request: Any) -> dict[str, Any]:
        """Return a recorded answer."""
        found = self._playback.cassettes.load(self._cleaned(request))
        assert found is not None, "it can be played"
        headers = {name: [value] for name, value in headers_of(found).items()}
        return {"status": {"code": found.status, "message": ""}, "headers": headers, "body": {"string": found.body}}

    def append(self, request: Any, response: dict[str, Any]) -> None:
        """Store an answer. Redirects are steps of another request, and are not stored."""
        listener = self._asked.pop(id(request), None)
        if listener is not None:
            kind = next(iter(response["headers"].get("Content-Type", ())), "")
            content = response["body"].get("string", b"")
            _kept(self._playback, listener, response["status"]["code"], kind, content)

    def _cleaned(self, request: Any) -> CleanedRequest:
        body = request.body
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
        return self._playback.cassettes.asked(request.method, request.uri, _read(body) or b"", _lower(request.headers))


@contextmanager
def own_calls_covered(settings: Settings, scrub: Scrub | None) -> Iterator[None]:
    """Record or replay, in the block, what runs in ``answering_app`` calls by HTTP. Count what cannot be recorded.

    Raises:
        DataError: answers are to be stored in a folder that cannot be written.
    """
    access = access_of(settings)
    playback = AppPlayback(
        AppCassettes(settings.folder("cassettes") / OWN, secrets_of(settings), scrub, settings.abridge),
        may_call=not access.calls_nobody,
        keep=access.records,
        ask_again=settings.rerecord and access.records,
        refuse="Record it: --rag-mode=record",
    )

    def skips(url: object) -> bool:
        return no_app_answers() or is_qdrant(url, settings)

    with ExitStack() as stack:
        stack.enter_context(patched(playback, lambda asked: skips(asked.url)))
        stack.enter_context(other_transports_patched(playback, skips))
        stack.enter_context(threads_of_apps())
        stack.enter_context(
            unrecorded_calls.counted(
                lambda: not no_app_answers(), lambda host, port: is_qdrant(f"http://{host}:{port}", settings)
            )
        )
        yield


def is_qdrant(url: Any, settings: Settings) -> bool:
    """Return whether a call goes to the Qdrant server that the user configured on this machine."""
    asked, known = urlsplit(str(url)), urlsplit(settings.qdrant_url)
    return known.hostname in LOOPBACK and asked.hostname in LOOPBACK and asked.port == known.port
