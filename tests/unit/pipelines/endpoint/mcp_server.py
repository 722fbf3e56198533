"""An MCP server as the tests need one: one address, sessions, and a tool."""

from __future__ import annotations

import json
from typing import Any

from tests.unit.server import Reply, Server, as_json

VERSION = "2025-06-18"


class McpServer(Server):
    """Answers by method; ``result`` is what the tool returns, ``streams`` says how."""

    result: Any = None
    streams = False
    forgets = 0

    def next(self) -> Reply:
        request = self.requests[-1]
        method = request.get("method")
        if method == "initialize":
            result = {"protocolVersion": VERSION, "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            return as_json({"jsonrpc": "2.0", "id": 0, "result": result}, mcp_session_id="s-1")
        if method != "tools/call":
            return Reply(202)
        if self.forgets:
            self.forgets -= 1
            return as_json({"error": "no session"}, 404)
        said = {"jsonrpc": "2.0", "id": request["id"], **self.result}
        if not self.streams:
            return as_json(said)
        progress = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}
        body = "".join(f"event: message\ndata: {json.dumps(each)}\n\n" for each in (progress, said))
        return Reply(body=body.encode(), kind="text/event-stream")


def text_result(text: str, **more: Any) -> dict[str, Any]:
    return {"result": {"content": [{"type": "text", "text": text}], **more}}
