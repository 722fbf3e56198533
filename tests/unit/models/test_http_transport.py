"""httpx2 over aiohttp's connections: what passes, what fails and how, and when a connection is used again."""

from __future__ import annotations

import asyncio
import gzip
import shutil
import ssl
import subprocess
import tracemalloc
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelOutputError
from rag_harness.models.calls import Decompressor
from rag_harness.models.http_transport import AiohttpTransport

Write = asyncio.StreamWriter
OK = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"


@dataclass
class Seen:
    """What a server saw: heads of requests, connections, and connections whose client has left."""

    url: str = ""
    heads: list[bytes] = field(default_factory=list)
    connections: int = 0
    left: asyncio.Event = field(default_factory=asyncio.Event)


@asynccontextmanager
async def answering(answer: Callable[[Write], Awaitable[None]]) -> AsyncIterator[Seen]:
    seen = Seen()

    async def serve(reader: asyncio.StreamReader, writer: Write) -> None:
        seen.connections += 1
        try:
            while True:
                seen.heads.append(await reader.readuntil(b"\r\n\r\n"))
                await answer(writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            seen.left.set()
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        seen.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/path?q=a%20b"
        yield seen


def says(content: bytes) -> Callable[[Write], Awaitable[None]]:
    async def answer(writer: Write) -> None:
        writer.write(content)

    return answer


def client() -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=AiohttpTransport())


def test_request_and_response_pass_as_they_are() -> None:
    async def session() -> None:
        packed = gzip.compress(b"hello")
        head = OK + b"content-encoding: gzip\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: %d\r\n\r\n"
        async with answering(says(head % len(packed) + packed)) as server, client() as http:
            said = await http.get(server.url, headers={"authorization": "Bearer key"})
        assert (said.status_code, said.text, said.http_version) == (200, "hello", "HTTP/1.1")
        assert said.headers.get_list("set-cookie") == ["a=1", "b=2"]
        (sent,) = server.heads
        assert sent.startswith(b"GET /path?q=a%20b HTTP/1.1\r\n")
        assert sent.lower().count(b"user-agent:") == sent.lower().count(b"host:") == 1
        assert b"authorization: Bearer key" in sent.replace(b"Authorization", b"authorization")

    asyncio.run(session())


def test_a_redirect_is_not_followed_and_a_cookie_not_sent_back() -> None:
    async def session() -> None:
        head = b"HTTP/1.1 302 Found\r\nlocation: /else\r\nset-cookie: a=1\r\ncontent-length: 0\r\n\r\n"
        async with answering(says(head)) as server:
            transport = AiohttpTransport()
            for _ in range(2):
                said = await transport.handle_async_request(httpx2.Request("GET", server.url))
                assert said.status_code == 302
                await said.aclose()
            await transport.aclose()
        assert len(server.heads) == 2
        assert b"cookie" not in server.heads[1].lower()

    asyncio.run(session())


def test_a_stream_passes_as_it_comes_and_its_connection_is_used_again() -> None:
    async def session() -> None:
        goes_on = asyncio.Event()

        async def slowly(writer: Write) -> None:
            writer.write(OK + b"transfer-encoding: chunked\r\n\r\n3\r\none\r\n")
            await writer.drain()
            await goes_on.wait()
            writer.write(b"3\r\ntwo\r\n0\r\n\r\n")

        async with answering(slowly) as server, client() as http:
            for _ in range(3):
                goes_on.clear()
                async with http.stream("GET", server.url) as said:
                    parts = said.aiter_raw()
                    assert await anext(parts) == b"one"
                    goes_on.set()
                    assert b"".join([part async for part in parts]) == b"two"
        assert server.connections == 1

    asyncio.run(asyncio.wait_for(session(), 20))


@pytest.mark.parametrize("cancelled", [True, False])
def test_who_leaves_early_closes_the_connection(cancelled: bool) -> None:
    async def session() -> None:
        begun = says(OK + b"content-length: 100\r\n\r\nbegun") if not cancelled else says(b"")

        async with answering(begun) as server, client() as http:
            if cancelled:
                task = asyncio.ensure_future(http.get(server.url))
                while not server.heads:
                    await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                async with http.stream("GET", server.url) as said:
                    assert await anext(said.aiter_raw()) == b"begun"
            await asyncio.wait_for(server.left.wait(), 5)

    asyncio.run(session())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        OK + b"content-length: 100\r\n\r\nhalf",
        b"no HTTP at all\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\nx",
    ],
    ids=["nothing", "half", "not HTTP", "no chunk"],
)
def test_what_breaks_is_an_error_of_httpx2(content: bytes) -> None:
    async def broken(writer: Write) -> None:
        writer.write(content)
        await writer.drain()
        writer.close()

    async def session() -> None:
        async with answering(broken) as server, client() as http:
            with pytest.raises(httpx2.TransportError) as caught:
                await http.get(server.url)
        assert str(caught.value)
        assert caught.value.request.url == server.url

    asyncio.run(session())


def test_nobody_listens_and_no_such_host() -> None:
    async def session() -> None:
        async with client() as http:
            for url in ("http://127.0.0.1:9/", "http://no-such-host.invalid/"):
                with pytest.raises(httpx2.ConnectError):
                    await http.get(url)

    asyncio.run(session())


@pytest.mark.skipif(not shutil.which("openssl"), reason="makes a certificate with the command openssl")
def test_a_certificate_that_nobody_signed_is_refused(tmp_path: Path) -> None:
    made = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    made += ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = {"-keyout": tmp_path / "key.pem", "-out": tmp_path / "certificate.pem"}
    named = [str(each) for pair in files.items() for each in pair]
    subprocess.run(["openssl", *made, *named], check=True, capture_output=True)

    async def session() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(files["-out"], files["-keyout"])

        async def never(reader: asyncio.StreamReader, writer: Write) -> None:
            raise AssertionError("a request came")

        async with await asyncio.start_server(never, "127.0.0.1", 0, ssl=context) as server:
            port = server.sockets[0].getsockname()[1]
            async with client() as http:
                with pytest.raises(httpx2.ConnectError, match=r"(?i)certificate"):
                    await http.get(f"https://127.0.0.1:{port}/")

    asyncio.run(session())


def test_a_proxy_of_the_environment_is_asked_but_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    async def session() -> None:
        async with answering(says(OK + b"content-length: 2\r\n\r\nok")) as server, client() as http:
            monkeypatch.setenv("http_proxy", server.url.partition("/path")[0])
            monkeypatch.setenv("no_proxy", "direct.test")
            assert (await http.get("http://models.test/v1")).text == "ok"
            with pytest.raises(httpx2.ConnectError):
                await http.get("http://direct.test:9/v1")
            assert (await http.get(server.url)).text == "ok"
        assert server.heads[0].startswith(b"GET http://models.test/v1 ")
        assert server.heads[1].startswith(b"GET /path")

    asyncio.run(session())


def test_a_password_file_of_the_user_is_not_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password planted-1\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    async def session() -> None:
        async with answering(says(OK + b"content-length: 2\r\n\r\nok")) as server, client() as http:
            assert (await http.get(server.url, headers={"authorization": "Bearer key"})).text == "ok"
        assert b"Basic" not in server.heads[0]

    asyncio.run(session())


def test_a_body_without_an_end_is_cut_off() -> None:
    async def endless(writer: Write) -> None:
        writer.write(OK + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(1000):
            writer.write(b"10000\r\n" + b"x" * 2**16 + b"\r\n")
            await writer.drain()

    async def session() -> None:
        http = httpx2.AsyncClient(transport=AiohttpTransport("The model", 2**20))
        async with answering(endless) as server, http:
            with pytest.raises(ModelOutputError, match="The model answered with more than 1 MB, and was cut off there"):
                await http.get(server.url)

    asyncio.run(session())


def test_a_bomb_of_gzip_lets_clocks_go_on() -> None:
    packed = gzip.compress(b"a" * 60_000_000, 1)
    head = OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)

    async def session() -> tuple[int, float]:
        ticks, longest = 0, 0.0

        async def clock() -> None:
            nonlocal ticks, longest
            while True:
                before = asyncio.get_running_loop().time()
                await asyncio.sleep(0)
                ticks, longest = ticks + 1, max(longest, asyncio.get_running_loop().time() - before)

        ticking = asyncio.ensure_future(clock())
        async with answering(says(head + packed)) as server, client() as http:
            with pytest.raises(ModelOutputError, match="more than 20 MB"):
                await http.get(server.url)
        ticking.cancel()
        return ticks, longest

    ticks, longest = asyncio.run(session())
    assert ticks > 300  # of 320 pieces
    assert longest < 5


@pytest.mark.parametrize("packing", [b"br", b"zstd", b"gzip, gzip"])
def test_what_cannot_be_unpacked_is_said(packing: bytes) -> None:
    async def session() -> None:
        reply = OK + b"content-encoding: " + packing + b"\r\ncontent-length: 2\r\n\r\nxx"
        async with answering(says(reply)) as server, client() as http:
            with pytest.raises(ModelOutputError, match=r"127\.0\.0\.1 packed its answer with"):
                await http.get(server.url, headers={"accept-encoding": "br"})
        assert b"br" not in server.heads[0].lower().partition(b"accept-encoding:")[2].partition(b"\r\n")[0]

    asyncio.run(session())


# Replies unpacked piece by piece: what zlib gives, however they are cut, and no more than may be.


def raw_deflate(content: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()


PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": lambda content: content,
    "identity": lambda content: content,
    "gzip": gzip.compress,
    "X-GZIP ": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
}


@given(
    st.sampled_from(sorted(PACKED)),
    st.binary(max_size=300)
    | st.builds(lambda each, n: each * n, st.binary(min_size=1, max_size=3), st.integers(0, 2**17)),
    st.lists(st.integers(0, 2000), max_size=5),
)
def test_what_was_packed_comes_back_however_it_is_cut(packing: str, content: bytes, cuts: list[int]) -> None:
    packed = PACKED[packing](content)
    places = [0, *sorted(min(cut, len(packed)) for cut in cuts), len(packed)]
    unpacked = Decompressor("somebody", packing)
    found = [piece for start, stop in pairwise(places) for piece in unpacked.feed(packed[start:stop])]
    assert b"".join(found) == content
    assert not packing.strip().lower().startswith(("g", "x", "d")) or all(len(piece) <= 2**16 for piece in found)


def test_a_bomb_goes_off_in_small_pieces_and_not_to_its_end() -> None:
    bomb = gzip.compress(b"a" * 60_000_000, 1)
    unpacked = Decompressor("The model", "gzip")
    tracemalloc.start()
    try:
        with pytest.raises(ModelOutputError, match="The model answered with more than 20 MB, and was cut off there"):
            deque(unpacked.feed(bomb), maxlen=1)
        assert tracemalloc.get_traced_memory()[1] < 3 * len(bomb)
    finally:
        tracemalloc.stop()


def test_what_is_packed_otherwise_is_refused() -> None:
    with pytest.raises(ModelOutputError, match=r"packed its answer with 'br'; gzip, deflate can be unpacked"):
        Decompressor("The model", "br")
    with pytest.raises(ValueError, match="not packed as its header says"):
        list(Decompressor("The model", "gzip").feed(b"no gzip at all"))
