"""Record and replay in urllib3, which requests and botocore call by, and in aiohttp.

What is recorded is read to its end before the client sees it, as vcrpy does.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from io import BytesIO
from typing import Any
from unittest.mock import patch

from rag_harness.models.recording.cassettes import CleanedRequest, Recorded
from rag_harness.models.recording.playback import AnswerListener, Playback, headers_of
from rag_harness.models.recording.unrecorded import recorded_call

Skips = Callable[[str], bool]
"""Returns whether a request to an address is neither recorded nor replayed."""


@contextmanager
def other_transports_patched(playback: Playback, skips: Skips) -> Iterator[None]:
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
def _urllib3_patched(playback: Playback, skips: Skips) -> Iterator[None]:
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
def _aiohttp_patched(playback: Playback, skips: Skips) -> Iterator[None]:
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

    def __init__(self, playback: Playback, skips: Skips) -> None:
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
        """Store an answer. Those that redirect were not asked for by themselves, and are not kept."""
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
