"""Answers as server-sent events (HTML Standard, 9.2)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from fastapi import Request
from fastapi.responses import StreamingResponse

from rag_harness.service.telling import AnswerEvent

EVENTS = "text/event-stream"
_WORDS = {"type": "string"}
SENT: dict[str, Any] = {
    EVENTS: {"schema": {"type": "object", "required": ["data"], "properties": {"event": _WORDS, "data": _WORDS}}}
}
"""The part of the OpenAPI document about streams: the shape of one event."""


def wants_events(request: Request) -> bool:
    """Return whether a client wants events."""
    return EVENTS in request.headers.get("accept", "")


def streamed(told: AsyncGenerator[AnswerEvent, None]) -> StreamingResponse:
    """Return the response that sends events as they come. If the client leaves, the work ends."""
    return StreamingResponse(_lines(told), media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


async def _lines(told: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[str, None]:
    async with aclosing(told) as events:
        async for event in events:
            yield f"event: {event.name}\ndata: {json_line(event.data)}\n\n"


def json_line(data: object) -> str:
    """Return JSON on one line."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
