"""A tool over MCP's Streamable HTTP: initialize, tools/call, and the content of the result.

Model Context Protocol, revision 2025-06-18, "Transports": one address; JSON-RPC by POST; JSON or a stream as response.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from rag_harness.errors import ModelCallError, ModelOutputError
from rag_harness.pipelines.endpoint.parsing import parsed_json
from rag_harness.pipelines.endpoint.request import Request

PROTOCOL_VERSION = "2025-06-18"
SESSION_HEADER = "mcp-session-id"
_HELLO = {
    "protocolVersion": PROTOCOL_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "rag-harness", "version": "1"},
}


class McpSession:
    """A session with an MCP server. It is initialized once, before the first call.

    Args:
        post: sends a request; returns the headers and the JSON of the response, or None without one.
    """

    def __init__(self, post: Callable[[Request], Awaitable[tuple[Any, Any]]]) -> None:
        self._post = post
        self._joins: tuple[tuple[str, str], ...] | None = None
        self._lock: asyncio.Lock | None = None

    async def joined(self, request: Request) -> Request:
        """Return ``request`` with the headers of the session. The session is opened if needed.

        Raises:
            ModelCallError: the server refuses a session.
        """
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            joins = self._joins = self._joins or await self._opened(request)
        return replace(request, headers=(*request.headers, *joins))

    async def _opened(self, request: Request) -> tuple[tuple[str, str], ...]:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO}
        headers, said = await self._post(replace(request, body=hello))
        result = _result_of(said, "the MCP server")
        session = headers.get(SESSION_HEADER)
        joins = (("mcp-protocol-version", str(result.get("protocolVersion", PROTOCOL_VERSION))),)
        joins += ((SESSION_HEADER, session),) if session else ()
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._post(replace(request, body=ready, headers=(*request.headers, *joins)))
        return joins

    def forget(self, request: Request) -> bool:
        """Open a new session before the next call; return whether ``request`` belonged to a session.

        Many calls may notice at the same time that a session has ended. Only the first one opens the new session.
        """
        is_joined = SESSION_HEADER in dict(request.headers)
        if self._joins is not None and request.headers[-len(self._joins) :] == self._joins:
            self._joins = None
        return is_joined


def tool_content(response: Any, name: str) -> dict[str, Any]:
    """Return the result of a call for the paths: ``text`` (all texts joined), ``content``, ``structuredContent``.

    If a tool has no structured content, but its text is a JSON object, ``structuredContent`` is that object.

    Raises:
        ModelCallError: the server or the tool reports an error.
        ModelOutputError: the response is no result of a tool.
    """
    result = _result_of(response, name)
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ModelOutputError(f"{name} answered with no result of a tool: {json.dumps(result)[:200]}")
    texts = [item["text"] for item in content if isinstance(item, Mapping) and isinstance(item.get("text"), str)]
    if result.get("isError"):
        raise ModelCallError(f"{name}: the tool says that it failed: {' '.join(texts)[:300]}")
    text = "\n".join(texts)
    return {"structuredContent": _object(text), **result, "text": text}


def _result_of(response: Any, name: str) -> Mapping[str, Any]:
    if isinstance(response, Mapping) and isinstance(response.get("error"), Mapping):
        error = response["error"]
        raise ModelCallError(f"{name} refused: {error.get('message')} (code {error.get('code')})")
    result = response.get("result") if isinstance(response, Mapping) else None
    if not isinstance(result, Mapping):
        raise ModelOutputError(f"{name} answered with no JSON-RPC result: {json.dumps(response)[:200]}")
    return result


def _object(text: str) -> Any:
    try:
        found = parsed_json(text.encode(), "", "") if text.lstrip()[:1] == "{" else None
    except ModelOutputError:
        return None
    return found
