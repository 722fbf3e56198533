"""A real server on a free port of 127.0.0.1, for as long as a block lasts."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from rag_harness.service.server import uvicorn_settings


class _EndsAtOnce(uvicorn.Server):
    """uvicorn looks ten times a second whether it shall end."""

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            await asyncio.sleep(0.01)


@contextmanager
def serving(app: Any, **changed: Any) -> Iterator[int]:
    """Give the port of a server; ``changed`` goes over what the service gives uvicorn."""
    config = uvicorn.Config(app, "127.0.0.1", 0, log_config=None, **{**uvicorn_settings(), **changed})
    server = _EndsAtOnce(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        until = time.monotonic() + 30
        while not server.started and thread.is_alive() and time.monotonic() < until:
            time.sleep(0.005)
        yield server.servers[0].sockets[0].getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(10)
