"""Accepts connections in a thread of its own, and answers ``GET /health`` there: it has a loop that does nothing else.

The loop that serves may be busy for a while: it writes streams, checks bodies and makes JSON of answers. Who asks
whether the process lives must not wait for that. Two sockets of one port would get connections by chance
(SO_REUSEPORT), whatever they ask. So one thread accepts all of them, looks at the first bytes without taking them, and
hands every other connection to the loop that serves.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Any, cast

import uvicorn
from uvicorn.server import ServerState

_ASKED = (b"GET /health ", b"GET /health?")
_FIRST_BYTES_S = 0.05
"""How long the first bytes of a connection are waited for. Probes send them at once; others have limits elsewhere."""
_PAUSE_S = 0.1
"""Pause where no connection can be accepted: too many files are open."""
_ENDS_WITHIN_S = 2.0
Asgi = Any


def with_health_beside(server_type: type[uvicorn.Server]) -> type[uvicorn.Server]:
    """Return a type of servers whose connections come in by a ``HealthDoor``. Each is run with its listening sockets.

    Args:
        server_type: uvicorn's server, or one derived from it.
    """

    class Server(server_type):  # type: ignore[misc, valid-type]
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup([])
            self._door = HealthDoor(self, sockets or [])

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            await self._door.close()
            await super().shutdown(sockets)

    return Server


class HealthDoor:
    """The thread that accepts. Make it on the loop that serves, once the application has started.

    Args:
        server: what serves on this loop.
        sockets: they listen.
    """

    def __init__(self, server: uvicorn.Server, sockets: Sequence[socket.socket]) -> None:
        self._server, self._serving = server, asyncio.get_running_loop()
        self._handed: set[asyncio.Task[Any]] = set()
        # A loop that can look at sockets, on Windows, too.
        self._loop = asyncio.SelectorEventLoop()
        self._state = ServerState()
        self._config = copy(server.config)
        self._config.loaded_app = _answering_once(cast("Asgi", server.config.loaded_app))
        self._tasks = {self._loop.create_task(self._accept(each)) for each in sockets}
        self._thread = threading.Thread(target=self._run, name="rag-health", daemon=True)
        self._thread.start()

    async def close(self) -> None:
        """Accept nothing more, and end the thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.to_thread(self._thread.join, _ENDS_WITHIN_S)
        if self._handed:
            await asyncio.wait(set(self._handed))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for connection in list(self._state.connections):
            connection.shutdown()
        for task in self._tasks:
            task.cancel()
        self._loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
        self._loop.close()

    async def _accept(self, listening: socket.socket) -> None:
        listening.setblocking(False)
        while True:
            try:
                connection, _ = await self._loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(_PAUSE_S)
                continue
            task = self._loop.create_task(self._show_in(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _show_in(self, connection: socket.socket) -> None:
        """Answer a connection here, or hand it over."""
        try:
            connection.setblocking(False)
            begins = _peeked(connection) or await self._first_bytes(connection)
            if begins.startswith(_ASKED):
                self._state.default_headers = self._server.server_state.default_headers
                await self._loop.connect_accepted_socket(lambda: self._protocol(self._config, self._state), connection)
            else:
                self._serving.call_soon_threadsafe(self._hand_over, connection)
        except (OSError, RuntimeError):  # it was reset, or the loop that serves has ended
            connection.close()

    async def _first_bytes(self, connection: socket.socket) -> bytes:
        came: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(connection, _set, came)
        try:
            await asyncio.wait({came}, timeout=_FIRST_BYTES_S)
        finally:
            self._loop.remove_reader(connection)
        return _peeked(connection)

    def _hand_over(self, connection: socket.socket) -> None:
        """Serve a connection on the loop that serves; called there."""
        server = self._server
        made = self._serving.connect_accepted_socket(
            lambda: self._protocol(server.config, server.server_state), connection
        )
        task = self._serving.create_task(made)
        self._handed.add(task)
        task.add_done_callback(self._settle)

    def _settle(self, task: asyncio.Task[Any]) -> None:
        self._handed.discard(task)
        if not task.cancelled():
            task.exception()  # a connection that was reset meanwhile

    def _protocol(self, config: uvicorn.Config, state: ServerState) -> asyncio.Protocol:
        made: Any = config.http_protocol_class
        protocol: asyncio.Protocol = made(config=config, server_state=state, app_state=self._server.lifespan.state)
        return protocol


def _set(came: asyncio.Future[None]) -> None:
    if not came.done():
        came.set_result(None)


def _peeked(connection: socket.socket) -> bytes:
    with suppress(BlockingIOError):
        return connection.recv(len(_ASKED[0]), socket.MSG_PEEK)
    return b""


def _answering_once(app: Asgi) -> Asgi:
    """Return an application that ends each connection with its first answer: what follows may be for the other loop."""

    async def once(scope: Any, receive: Any, send: Any) -> None:
        async def last(message: Any) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), (b"connection", b"close")]}
            await send(message)

        await app(scope, receive, last)

    return once
