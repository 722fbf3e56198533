"""``GET /health`` is answered while the loop that serves is held, and every other request is served there."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any

import httpx2
import pytest
import uvicorn

from rag_harness.service.authentication import listening_on
from rag_harness.service.server import uvicorn_settings, with_health_beside

HEALTH = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
OTHER = b"GET /other HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


class App:
    """Says which thread answers; ``/held`` holds its thread until it is let go."""

    def __init__(self) -> None:
        self.is_held, self.go_on = threading.Event(), threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            for what in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{what}.complete"})
            return
        if scope["path"] == "/held":
            self.is_held.set()
            assert self.go_on.wait(60)
        body = f"{scope['path']} {threading.current_thread().name}".encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


@contextmanager
def served(app: App, most: int = 512) -> Iterator[int]:
    class EndsAtOnce(uvicorn.Server):
        async def main_loop(self) -> None:
            while not await self.on_tick(0):
                await asyncio.sleep(0.01)

    sockets = listening_on("127.0.0.1", 0)
    config = uvicorn.Config(app, log_config=None, timeout_graceful_shutdown=3, **uvicorn_settings(most))
    server = with_health_beside(EndsAtOnce)(config)
    thread = threading.Thread(target=server.run, args=(sockets,), name="serves")
    thread.start()
    try:
        yield sockets[0].getsockname()[1]
    finally:
        app.go_on.set()
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()
        assert "rag-health" not in {each.name for each in threading.enumerate()}


def raw(port: int, *parts: bytes, pause: float = 0.0) -> bytes:
    """Return what comes back until the server closes."""
    with closing(socket.create_connection(("127.0.0.1", port), 30)) as client:
        for part in parts:
            client.sendall(part)
            time.sleep(pause)
        answer = b""
        with suppress(ConnectionResetError):  # it was refused before it was read
            while piece := client.recv(65_536):
                answer += piece
        return answer


def test_health_is_answered_while_the_loop_that_serves_is_held() -> None:
    app = App()
    with served(app) as port:
        held = threading.Thread(target=httpx2.get, args=(f"http://127.0.0.1:{port}/held",), kwargs={"timeout": 60})
        held.start()
        assert app.is_held.wait(30)
        said = httpx2.get(f"http://127.0.0.1:{port}/health?x=1", timeout=30)
        assert (said.status_code, said.text) == (200, "/health rag-health")
        app.go_on.set()
        held.join()


def test_a_connection_that_asks_for_health_is_closed_behind_the_answer() -> None:
    with served(App()) as port:
        said = raw(port, HEALTH + OTHER)
        assert said.lower().count(b"http/1.1 200") == 1
        assert b"connection: close" in said.lower()
        assert b"/other" not in said


@pytest.mark.parametrize(
    "parts",
    [(OTHER,), (OTHER[:5], OTHER[5:]), (b"", OTHER), (HEALTH[:7], HEALTH[7:-2] + b"Connection: close\r\n\r\n")],
    ids=["at once", "in pieces", "after a while", "health in pieces"],
)
def test_every_other_connection_is_served_where_all_of_them_were(parts: tuple[bytes, ...]) -> None:
    with served(App()) as port:
        assert raw(port, *parts, pause=0.1).endswith(b" serves")


def test_connections_that_say_nothing_keep_nobody_from_health() -> None:
    with served(App(), most=8) as port:
        idle = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(100)]
        try:
            said = [httpx2.get(f"http://127.0.0.1:{port}/health", timeout=30).text for _ in range(5)]
            assert said == ["/health rag-health"] * 5
            assert b"503" in raw(port, OTHER)[:20]
        finally:
            for each in idle:
                each.close()


def test_clients_that_leave_at_once_are_no_error(caplog: pytest.LogCaptureFixture) -> None:
    with served(App()) as port:
        for content in (b"", b"GET", HEALTH, OTHER):
            for _ in range(10):
                with closing(socket.create_connection(("127.0.0.1", port), 30)) as client:
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                    client.sendall(content)
        assert raw(port, OTHER).endswith(b" serves")
    assert not [each for each in caplog.records if each.levelname in ("ERROR", "CRITICAL")]
