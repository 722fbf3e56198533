"""Connections that say nothing or do not listen, and health beside a loop that is held."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing, contextmanager, suppress
from typing import Any, cast

import httpx
import httpx2
import pytest
import uvicorn
from fastapi.responses import StreamingResponse
from starlette.requests import Request

from rag_harness.service.app_state import Options
from rag_harness.service.authentication import listening_on
from rag_harness.service.database import Database
from rag_harness.service.keys import make_key
from rag_harness.service.middleware import AnsweringPlaces
from rag_harness.service.problems import ProblemError
from rag_harness.service.server import Connection, uvicorn_settings, with_health_beside
from tests.unit.service.access.small_app import Asking, create_app, opened
from tests.unit.service.listened import serving

# Connections that say nothing, say it slowly, or do not listen: against a real server, with raw sockets.

# Connections that say nothing, say it slowly, or do not listen: against a real server, with raw sockets.

HEAD = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


class Quick(Connection):
    headers_s = 0.25
    reading_s = 0.2


class Few(Connection):
    most = 4


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Give the port of a server that waits for nobody's headers in vain, however busy the machine is."""
    with opened(tmp_path_factory.mktemp("patient")) as db, serving(create_app(db)) as port:
        yield port


@pytest.fixture(scope="module")
def quick_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Give the port of a server that soon tires of waiting."""
    with opened(tmp_path_factory.mktemp("quick")) as db:
        app = create_app(db)

        @app.get("/takes-long")
        async def takes_long() -> str:
            await asyncio.sleep(0.4)
            return "there"

        with serving(app, http=Quick) as port:
            yield port


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=30)


def all_of(client: socket.socket) -> bytes:
    said = b""
    while part := client.recv(65536):
        said += part
    return said


def exchanged(port: int, *sent: bytes) -> bytes:
    with connected(port) as client:
        for part in sent:
            client.sendall(part)
        return all_of(client)


def test_a_request_is_answered_and_the_server_is_not_named(port: int) -> None:
    said = exchanged(port, HEAD + b"Connection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nserver:" not in said.lower()


def test_who_says_nothing_is_not_waited_for(quick_port: int) -> None:
    began = time.monotonic()
    assert exchanged(quick_port).startswith(b"HTTP/1.1 408 ")
    assert 0.15 < time.monotonic() - began < 2


def test_headers_that_drip_are_not_waited_for(quick_port: int) -> None:
    with connected(quick_port) as client:
        client.sendall(HEAD)
        began, said = time.monotonic(), b""
        client.settimeout(0.02)
        while time.monotonic() - began < 3 and not said:
            try:
                client.sendall(b"X: y\r\n")
                said = client.recv(65536)
            except TimeoutError:
                continue
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in said
    assert time.monotonic() - began < 2


def test_the_second_request_of_a_connection_may_not_drip_either(quick_port: int) -> None:
    with connected(quick_port) as client:
        client.sendall(HEAD + b"\r\n")
        assert client.recv(65536).startswith(b"HTTP/1.1 200 ")
        time.sleep(0.4)  # between requests a client may be silent for longer
        client.sendall(HEAD)
        assert b"HTTP/1.1 408 " in all_of(client)


def test_an_answer_may_take_longer_than_headers_may(quick_port: int) -> None:
    said = exchanged(quick_port, HEAD.replace(b"/health", b"/takes-long") + b"Connection: close\r\n\r\n")
    assert said.endswith(b'"there"')


@pytest.mark.parametrize("sent", [b"\x16\x03\x01\x00", b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nHost : x\r\n\r\n"])
def test_what_is_no_http_is_a_problem(port: int, sent: bytes) -> None:
    said = exchanged(port, sent + b"\r\n" * 2)
    assert said.startswith(b"HTTP/1.1 400 ")
    assert b'"code": "no_http"' in said


def test_headers_without_an_end_are_a_problem(port: int) -> None:
    said = exchanged(port, HEAD, b"X: " + b"y" * (32 << 10))
    assert said.startswith(b"HTTP/1.1 400 ")


def test_a_connection_too_many_is_told_so(db: Database) -> None:
    with serving(create_app(db), http=Few) as port:
        held = [connected(port) for _ in range(Few.most)]
        # They are taken in the order in which they come.
        assert exchanged(port).startswith(b"HTTP/1.1 503 ")
        for client in held:
            client.close()
        until, said = time.monotonic() + 10, b""
        while time.monotonic() < until and not said.startswith(b"HTTP/1.1 200 "):
            time.sleep(0.01)  # the server has to hear that they have gone
            said = exchanged(port, HEAD + b"Connection: close\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 200 ")


def test_a_client_that_does_not_read_is_left(db: Database) -> None:
    app, ended = create_app(db), threading.Event()

    @app.get("/endless")
    async def endless() -> Any:
        async def parts() -> Any:
            try:
                while True:
                    yield b"x" * 65536
                    await asyncio.sleep(0)
            finally:
                ended.set()

        return StreamingResponse(parts())

    with serving(app, http=Quick) as port, connected(port) as client:
        client.sendall(HEAD.replace(b"/health", b"/endless") + b"\r\n")
        assert ended.wait(30)


def test_a_strangers_2_gb_are_answered_before_they_came(db: Database) -> None:
    make_key(db, ["query"])
    with serving(create_app(db)) as port, connected(port) as client:
        head = b"POST /ingest HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        client.sendall(head + b"Content-Length: 2147483648\r\n\r\n")
        sent = 0
        client.settimeout(0.2)
        try:
            while sent < 64 << 20:
                sent += client.send(b"x" * 65536)
        except (ConnectionError, TimeoutError):
            pass
        client.settimeout(30)
        said = client.recv(65536)
    assert said.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in said
    assert sent < 32 << 20


def test_who_waits_to_be_asked_for_the_body_is_refused_first(db: Database) -> None:
    with serving(create_app(db)) as port:
        head = b"POST /query HTTP/1.1\r\nHost: 127.0.0.1\r\nExpect: 100-continue\r\nContent-Type: application/json\r\n"
        with connected(port) as client:
            client.sendall(head + b"Content-Length: 10485760\r\n\r\n")
            # Not up to the end of the connection: the server waits a second for what may still come.
            said = client.recv(65536)
    assert said.startswith(b"HTTP/1.1 413 ")


def test_health_answers_while_every_place_and_many_connections_are_held(db: Database) -> None:
    app = create_app(db, Options("e1", concurrency=1))
    with serving(app) as port:
        held = [connected(port) for _ in range(100)]
        for client in held:
            client.sendall(HEAD)
        assert exchanged(port, HEAD + b"Connection: close\r\n\r\n").startswith(b"HTTP/1.1 200 ")
        for client in held:
            client.close()


# Limits of questions at once and of questions in the queue. Others must retry, and a client that leaves is removed.

ASKED = {"query": "q"}


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0.001)


class Client:
    """A client as its request shows it: there until it leaves."""

    def __init__(self) -> None:
        self.left = asyncio.Event()

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def request(self) -> Request:
        return cast(Request, self)


def in_loop(test: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(10):
            await test()

    asyncio.run(run())


def test_as_many_wait_as_are_answered_and_the_next_comes_back(db: Database) -> None:
    app = create_app(db, Options("e1", concurrency=2))
    places = app.state.access.places

    async def run() -> None:
        async with Asking(app).client() as client:
            held = [asyncio.ensure_future(client.post("/slow", json=ASKED)) for _ in range(4)]
            await until(lambda: places.waiting == 2)
            refused = await client.post("/query", json=ASKED)
            assert (refused.status_code, refused.json()["code"]) == (503, "too_busy")
            assert refused.headers["retry-after"] == "1"
            assert (await client.get("/health")).status_code == 200
            app.state.goes_on.set()
            answers: list[httpx.Response] = await asyncio.gather(*held)
            assert [answer.text for answer in answers] == ["firstlast"] * 4
            assert (await client.post("/query", json=ASKED)).status_code == 200

    in_loop(run)
    assert (places.taken, places.waiting) == (0, 0)


def test_a_stream_holds_its_place_to_the_end(db: Database) -> None:
    app = create_app(db, Options("e1", concurrency=1))

    async def run() -> None:
        async with Asking(app).client() as client:
            streamed = asyncio.ensure_future(client.post("/slow", json=ASKED))
            await until(lambda: app.state.access.places.taken == 1)
            await asyncio.sleep(0.02)
            assert app.state.access.places.taken == 1
            app.state.goes_on.set()
            await streamed
        assert app.state.access.places.taken == 0

    in_loop(run)


def test_turns_are_in_the_order_of_arrival() -> None:
    async def run() -> None:
        places, order = AnsweringPlaces(1), []

        async def asks(number: int) -> None:
            async with places.one(Client().request()):
                order.append(number)
                await asyncio.sleep(0)

        async with places.one(Client().request()):
            waiting = asyncio.ensure_future(asks(1))
            await until(lambda: places.waiting == 1)
        await asyncio.gather(asks(2), waiting)
        assert order == [1, 2]

    in_loop(run)


def test_who_leaves_while_waiting_takes_no_place() -> None:
    async def run() -> None:
        places, client = AnsweringPlaces(1), Client()

        async def asks() -> None:
            async with places.one(client.request()):
                raise AssertionError("nobody is there")

        async with places.one(Client().request()):
            waiting = asyncio.ensure_future(asks())
            await until(lambda: places.waiting == 1)
            client.left.set()
            with pytest.raises(ProblemError, match="left"):
                await waiting
            assert places.waiting == 0
        assert places.taken == 0

    in_loop(run)


@pytest.mark.parametrize("turn_comes_too", [False, True])
def test_a_cancelled_wait_leaves_no_place_taken(turn_comes_too: bool) -> None:
    async def run() -> None:
        places = AnsweringPlaces(1)

        async def asks() -> None:
            async with places.one(Client().request()):
                raise AssertionError("was cancelled")

        async with places.one(Client().request()):
            waiting = asyncio.ensure_future(asks())
            await until(lambda: places.waiting == 1)
            if not turn_comes_too:
                waiting.cancel()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (places.taken, places.waiting) == (0, 0)

    in_loop(run)


# ``GET /health`` is answered while the loop that serves is held, and every other request is served there.

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
