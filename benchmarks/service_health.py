"""Whether ``/health`` answers while 64 answers stream and a decompression bomb is ingested.

    python benchmarks/service_health.py [--streams 64] [--seconds 15] [--pause 0.05]

The model is a server in this process that sends a word each 50 ms, or after another ``--pause``; every stream that ends
is asked for again. The bomb is a PDF of some kB whose pages are 100 MB of zeros each; it is uploaded again and again.
``GET /health`` is asked by a process of its own. Prints what it took, in milliseconds, alone and meanwhile.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import multiprocessing
import tempfile
import time
import zlib
from collections.abc import AsyncIterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path

import aiohttp
from served import percentile, serving

PAGE = "# Lamps\n\nLamps can be returned within 45 days. Batteries cannot be returned at all.\n"
WORDS = 100
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


def bomb(pages: int = 20) -> bytes:
    """Return a PDF that unpacks to 100 MB a page, behind three filters."""
    zeros = zlib.compress(b"\0" * (100 << 20), 1)
    packed = zlib.compress(zlib.compress(zeros, 9), 9)
    filters = b"/Filter [/FlateDecode /FlateDecode /FlateDecode]"
    kids = b" ".join(b"%d 0 R" % (3 + 2 * page) for page in range(pages))
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, pages)]
    for page in range(pages):
        objects.append(b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents %d 0 R >>" % (4 + 2 * page))
        objects.append(b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(packed), filters, packed))
    body = b"%PDF-1.7\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % pair for pair in enumerate(objects, 1))
    return body + b"trailer << /Root 1 0 R >>\n%%EOF\n"


def _chunk(content: str) -> bytes:
    choice = {"index": 0, "delta": {"content": content}, "finish_reason": None}
    chunk = {"id": "m", "object": "chat.completion.chunk", "created": 1, "model": "drips", "choices": [choice]}
    return b"data: %s\n\n" % json.dumps(chunk).encode()


async def _drip(pause: float, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        await reader.readuntil(b"\r\n\r\n")
        words = ['{"answer": "', *["word "] * WORDS, '"}']
        writer.write(_HEAD)
        for word in words:
            writer.write(_chunk(word))
            await writer.drain()
            await asyncio.sleep(pause)
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
    writer.close()


@asynccontextmanager
async def model(pause: float) -> AsyncIterator[str]:
    """Give the address of a model that waits so many seconds after each word."""
    server = await asyncio.start_server(partial(_drip, pause), "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def asked(session: aiohttp.ClientSession, url: str, told: list[int]) -> None:
    """Ask for a stream, and again when it ends; counts its events."""
    while True:
        body, headers = {"query": "How long can I return lamps?"}, {"Accept": "text/event-stream"}
        async with session.post(f"{url}/query", json=body, headers=headers) as answer:
            async for line in answer.content:
                told[0] += line.startswith(b"event: token")
                told[1] += line.startswith(b"event: error")


async def bombed(session: aiohttp.ClientSession, url: str, statuses: list[int]) -> None:
    """Upload the bomb, again and again."""
    content = bomb()
    while True:
        form = aiohttp.FormData()
        form.add_field("file", content, filename="bomb.pdf")
        async with session.post(f"{url}/ingest", data=form) as answer:
            statuses.append(answer.status)
            await answer.read()


def healthy(address: str, seconds: float) -> list[float]:
    """Return the milliseconds that each of many calls took, each on a connection of its own as a probe makes them."""
    took, until = [], time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.perf_counter()
        connection = http.client.HTTPConnection(address, timeout=60)
        connection.request("GET", "/health")
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()
        connection.close()
        took.append((time.perf_counter() - began) * 1000)
        time.sleep(0.01)
    return took


async def measure(url: str, streams: int, seconds: float, probes: ProcessPoolExecutor) -> None:
    """Print what ``/health`` took alone, then meanwhile. The clients of the streams do not hold up the probe."""
    told, statuses = [0, 0], list[int]()

    async def probed(for_seconds: float) -> list[float]:
        return await asyncio.get_running_loop().run_in_executor(
            probes, healthy, url.removeprefix("http://"), for_seconds
        )

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        async with session.post(f"{url}/query", json={"query": "Warm?"}) as answer:
            await answer.read()  # what is imported at the first question is imported
        _say("alone", await probed(3))
        work = [asyncio.create_task(asked(session, url, told)) for _ in range(streams)]
        work.append(asyncio.create_task(bombed(session, url, statuses)))
        await asyncio.sleep(2)
        _say(f"{streams} streams, a bomb", await probed(seconds))
        for task in work:
            task.cancel()
        ended = await asyncio.gather(*work, return_exceptions=True)
    failed = [error for error in ended if not isinstance(error, asyncio.CancelledError)]
    print(f"{told[0]} tokens, {told[1]} errors, bombs answered with {statuses}, clients that failed: {failed}")


def _say(what: str, took: list[float]) -> None:
    shown = ", ".join(f"p{share * 100:g} {percentile(took, share):.1f}" for share in (0.5, 0.95, 0.99))
    print(f"{what}: {len(took)} calls, {shown}, most {max(took):.1f} ms")


async def main(streams: int, seconds: float, pause: float) -> None:
    """Serve a page with a model that takes its time, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        kb = Path(folder) / "kb"
        kb.mkdir()
        (kb / "lamps.md").write_text(PAGE, encoding="utf-8")
        async with model(pause) as address:
            flags = ("--experiment", "e2", "--kb", str(kb), "--profile", "mock")
            asks = ("--chat-model", "drips", "--chat-base-url", address, "--concurrency", str(max(64, streams)))
            served = serving(*flags, *asks, environment={"OPENAI_API_KEY": "none"}, folder=Path(folder))
            at = await asyncio.to_thread(served.__enter__)
            try:
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as probes:
                    await measure(at.url, streams, seconds, probes)
            finally:
                await asyncio.to_thread(served.__exit__, None, None, None)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--pause", type=float, default=0.05)
    chosen = parser.parse_args()
    asyncio.run(main(chosen.streams, chosen.seconds, chosen.pause))
