"""The receiver of spans says nothing to the terminal, whatever an exporter does, and counts what broke off."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterator

import pytest

from rag_harness.core.log import log
from rag_harness.pipelines.endpoint import spans
from rag_harness.pipelines.endpoint.spans import PATH, SpanServer, broken_exports

HEAD = f"POST {PATH} HTTP/1.1\r\nContent-Length: 1000\r\n".encode()


@pytest.fixture
def server() -> Iterator[SpanServer]:
    broken_exports.taken()
    made = SpanServer(0, "test")
    yield made
    made.close()


def sent(server: SpanServer, content: bytes, resets: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(content)
        if resets:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def counted(server: SpanServer, number: int) -> bool:
    """Wait until so many are counted, and no more."""
    found, until = 0, time.monotonic() + 5
    while found < number and time.monotonic() < until:
        found += broken_exports.taken().get(f"http://127.0.0.1:{server.port}{PATH}", 0)
        time.sleep(0.01)
    return found == number


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("content", [HEAD + b"\r\n{", HEAD + b"\r\n", HEAD + b"\r\n" + b"x" * 999])
def test_an_exporter_that_hangs_up_is_counted_in_silence(
    server: SpanServer, capfd: pytest.CaptureFixture[str], content: bytes, resets: bool
) -> None:
    for _ in range(3):
        sent(server, content, resets)
    assert counted(server, 3)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("resets", [True, False])
@pytest.mark.parametrize("content", [b"", b"\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\r\n"])
def test_what_sends_no_spans_is_not_counted(
    server: SpanServer, capfd: pytest.CaptureFixture[str], content: bytes, resets: bool
) -> None:
    sent(server, content, resets)
    sent(server, HEAD + b"\r\n", resets)
    assert counted(server, 1)
    assert capfd.readouterr() == ("", "")


def test_an_exporter_that_falls_silent_is_counted(
    server: SpanServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spans._Handler, "timeout", 0.05)
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(HEAD + b"\r\n{")
        assert counted(server, 1)
    assert capfd.readouterr() == ("", "")


def test_a_fault_of_ours_is_logged_and_counted_and_not_printed(
    server: SpanServer, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("planted")

    said: list[str] = []
    noted: Callable[..., None] = lambda message, **_: said.append(message)  # noqa: E731
    monkeypatch.setattr(spans, "_spans_in", broken)
    monkeypatch.setattr(log, "error", noted)
    sent(server, HEAD + b"\r\n" + b"x" * 1000, resets=False)
    assert counted(server, 1)
    assert said == ["a request with spans could not be handled"]
    assert capfd.readouterr() == ("", "")


def test_who_waits_in_vain_is_told(server: SpanServer) -> None:
    sent(server, HEAD + b"\r\n{", resets=True)
    assert counted(server, 1)
    assert "the exporter hung up" in server.inbox._hint()
