"""Counts and logs every request, outside everything that could answer it."""

from __future__ import annotations

import time
from typing import Any

from rag_harness.files.log import log
from rag_harness.service.disconnecting import CLIENT_LEFT
from rag_harness.service.observing.metrics import Metrics

Asgi = Any
_QUIET = ("/health", "/ready", "/metrics")
"""Paths that machines ask every few seconds. A log line for each would bury the others."""


class Counting:
    """Middleware: one count and one log line for each request, by the template of its route.

    Args:
        app: the application; its ``state.service.metrics`` counts.
    """

    def __init__(self, app: Asgi) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), CLIENT_LEFT

        async def watched(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            _count(scope, status, (time.perf_counter() - began) * 1000)


def _count(scope: Any, status: int, ms: float) -> None:
    metrics: Metrics = scope["app"].state.service.metrics
    route = getattr(scope.get("route"), "path", "")
    metrics.request(scope["method"], route, status)
    if route not in _QUIET:
        said = {"method": scope["method"], "route": route or "none", "status": status, "ms": round(ms, 1)}
        log.info("request", extra={**said, "trace_id": scope.get("state", {}).get("trace_id", "")})
