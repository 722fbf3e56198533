"""The ASGI app of the baseline reader, with the interface of OpenAI's chat completions."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias

from rag_harness.models.reader import wire
from rag_harness.models.reader.wire import ReaderReply, RequestError

Scope: TypeAlias = MutableMapping[str, Any]
Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]

# A prompt has a few kB. A longer request is no question.
MAX_BODY_BYTES = 8_000_000
_ROUTES = {"/chat/completions": "POST", "/models": "GET"}


class _DisconnectedError(Exception):
    """The client left before its request was complete."""


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    """Serve POST /v1/chat/completions and GET /v1/models. The paths also work without ``/v1``."""
    if scope["type"] == "lifespan":
        await _live(receive, send)
    elif scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1000})
    else:
        await _http(scope, receive, send)


async def _live(receive: Receive, send: Send) -> None:
    while True:
        event = (await receive())["type"]
        await send({"type": f"{event}.complete"})
        if event == "lifespan.shutdown":
            return


async def _http(scope: Scope, receive: Receive, send: Send) -> None:
    try:
        path = _route(scope)
        if path == "/models":
            await _send_json(send, 200, wire.models())
        else:
            await _reply(send, wire.answer(await _body(receive)))
    except RequestError as error:
        await _send_json(send, error.status, error.body)
    except _DisconnectedError:
        return


def _route(scope: Scope) -> str:
    """Return the known path of a request. Raises RequestError: 404, or 405 for the wrong method."""
    asked = str(scope["path"]).removeprefix(scope.get("root_path", ""))
    path = asked.removeprefix("/v1")
    if path not in _ROUTES:
        raise RequestError(404, f"Unknown path {asked}. Known: {', '.join(f'/v1{known}' for known in _ROUTES)}.")
    if scope["method"] != _ROUTES[path]:
        raise RequestError(405, f"{asked} takes {_ROUTES[path]}, not {scope['method']}.")
    return path


async def _body(receive: Receive) -> bytes:
    raw, more = bytearray(), True
    while more:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _DisconnectedError
        raw += event.get("body", b"")
        more = event.get("more_body", False)
        if len(raw) > MAX_BODY_BYTES:
            raise RequestError(413, f"The request is larger than {MAX_BODY_BYTES} bytes.")
    return bytes(raw)


async def _reply(send: Send, reply: ReaderReply) -> None:
    if not reply.stream:
        await _send_json(send, 200, wire.completion(reply))
        return
    await _start(send, 200, b"text/event-stream; charset=utf-8")
    for event in wire.events(reply):
        await _part(send, event, more=True)
    await _part(send, "")


async def _send_json(send: Send, status: int, body: dict[str, Any]) -> None:
    await _start(send, status, b"application/json")
    await _part(send, json.dumps(body))


async def _start(send: Send, status: int, content_type: bytes) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", content_type)]})


async def _part(send: Send, text: str, more: bool = False) -> None:
    await send({"type": "http.response.body", "body": text.encode(), "more_body": more})
