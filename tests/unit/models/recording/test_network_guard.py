from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rag_harness.core.errors import RecordingMissError
from rag_harness.models.recording.playback import allow_connections, closed_network, refuse_connections


@pytest.fixture
def closed() -> Iterator[None]:
    refuse_connections()
    yield
    allow_connections()


def send_to() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(b"x", ("127.0.0.1", 9))


def send_message() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendmsg([b"x"], [], 0, ("127.0.0.1", 9))


@pytest.mark.parametrize(
    ("attempt", "host"),
    [
        (lambda: socket.create_connection(("127.0.0.1", 9), timeout=1), "127.0.0.1"),
        (lambda: socket.create_connection(("::1", 9), timeout=1), "::1"),
        (lambda: socket.getaddrinfo("host.test", 443), "host.test"),
        (lambda: socket.getaddrinfo(b"host.test", 443), "host.test"),
        (lambda: socket.gethostbyname("host.test"), "host.test"),
        (lambda: socket.gethostbyname_ex("host.test"), "host.test"),
        (lambda: socket.gethostbyaddr("192.0.2.1"), "192.0.2.1"),
        (send_to, "127.0.0.1"),
        (send_message, "127.0.0.1"),
        (lambda: asyncio.run(_connect()), "127.0.0.1"),
    ],
)
def test_every_attempt_names_its_caller(closed: None, attempt: Callable[[], Any], host: str) -> None:
    wanted = rf"opens no connection, but .*\.py:\d+ \(.*\) asked for {host}\."
    with pytest.raises(RecordingMissError, match=wanted) as refused:
        attempt()
    assert "playback.py" not in str(refused.value), "it is not the guard that asks"


async def _connect() -> None:
    await asyncio.open_connection("127.0.0.1", 9)


def test_what_stays_open(closed: None) -> None:
    asyncio.run(asyncio.sleep(0))  # the loop's own pair of sockets
    one, other = socket.socketpair()
    with one, other, socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        socket.getaddrinfo(None, 80)


def test_a_host_may_be_let_through() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        refuse_connections({"127.0.0.1"})
        try:
            socket.create_connection(server.getsockname(), timeout=5).close()
            with pytest.raises(RecordingMissError):
                socket.getaddrinfo("host.test", 443)
        finally:
            allow_connections()


@pytest.mark.parametrize(
    ("server", "is_open"), [("http://localhost:6333", True), ("http://host.test", False), ("", False)]
)
def test_a_server_on_this_machine_is_let_through_until_the_block_ends(server: str, is_open: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with closed_network(server):
            with pytest.raises(RecordingMissError):
                socket.getaddrinfo("host.test", 443)
            if is_open:
                socket.create_connection(listening.getsockname(), timeout=5).close()
            else:
                with pytest.raises(RecordingMissError):
                    socket.create_connection(listening.getsockname(), timeout=5)
        socket.create_connection(listening.getsockname(), timeout=5).close()


def test_down_again(closed: None) -> None:
    allow_connections()
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), timeout=5).close()
