"""A model that is down, refuses, or sends nothing: the waiting user soon gets a clear error."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import httpx2
import pytest

from rag_harness.models.calls import OF_SOMEBODY, RetryPolicy, patience
from tests.unit.service.served import client_of, serving_of

ASKED = {"query": "When can lamps be returned?"}
NOWHERE = "http://127.0.0.1:1/v1"


@asynccontextmanager
async def endpoint(says: bytes) -> AsyncIterator[str]:
    """Give the address of a server that says so to each request, and no more; of nothing, it says nothing."""
    kept: list[asyncio.StreamWriter] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept.append(writer)
        with suppress(asyncio.IncompleteReadError):
            while True:
                asked.append(await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(int(re.findall(rb"content-length: (\d+)", asked[-1].lower())[0]))
                writer.write(says)

    asked: list[bytes] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    assert 0 < len(asked) <= 1 + OF_SOMEBODY.retries
    for writer in kept:
        writer.close()
    server.close()


async def posted(
    folder: Path, url: str, headers: dict[str, str] | None = None, pauses: list[float] | None = None, **options: Any
) -> httpx2.Response:
    """Ask; a pause between two tries is noted in ``pauses``, and takes no time."""
    # With the client's package imported, which takes seconds once.
    import openai  # noqa: F401

    serving = serving_of(folder, "r1", mode="live", chat_model="some/model", chat_base_url=url)
    chat = cast("Any", serving.experiment.pipeline).generator.chat
    noted = [] if pauses is None else pauses

    async def pause(seconds: float) -> None:
        noted.append(seconds)

    chat._wait = pause
    async with client_of(folder, serving, at_last=chat.aclose, **options) as client:
        return await client.post("/query", json=ASKED, headers=headers or {})


def refuses(status: str, wait: str = "") -> bytes:
    body = b'{"error": {"message": "not now"}}'
    said = f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n{wait}\r\n"
    return said.encode() + body


def test_nobody_waits_for_an_endpoint_that_is_down(tmp_path: Path) -> None:
    pauses: list[float] = []
    answered = asyncio.run(posted(tmp_path, NOWHERE, pauses=pauses))
    # A run pauses three times, for 7 s in all.
    assert len(pauses) == 1
    assert 0.5 < pauses[0] < 1.5
    said = answered.json()
    assert (answered.status_code, said["decision"], said["confidence"]) == (200, "abstain", 0.0)
    assert said["reasons"] == ["MODEL_UNAVAILABLE: ModelCallError"]
    assert "127.0.0.1" not in answered.text


def test_whoever_streams_hears_it_too(tmp_path: Path) -> None:
    answered = asyncio.run(posted(tmp_path, NOWHERE, {"accept": "text/event-stream"}))
    assert "event: retrieval" in answered.text
    assert "MODEL_UNAVAILABLE" in answered.text
    assert "event: error" not in answered.text


@pytest.mark.parametrize(
    ("says", "paused"),
    [
        (refuses("503 Service Unavailable"), 1),
        (refuses("429 Too Many Requests", "retry-after: 30\r\n"), 0),
        (b"\x00\r\n\r\n", 1),
    ],
    ids=["refuses", "asks to wait", "speaks no HTTP"],
)
def test_an_endpoint_that_refuses_is_asked_twice_at_most(tmp_path: Path, says: bytes, paused: int) -> None:
    pauses: list[float] = []

    async def refused() -> httpx2.Response:
        async with endpoint(says) as url:
            return await posted(tmp_path, url, pauses=pauses)

    said = asyncio.run(refused()).json()
    assert len(pauses) == paused
    assert (said["decision"], said["reasons"]) == ("abstain", ["MODEL_UNAVAILABLE: ModelCallError"])


def test_an_endpoint_that_says_nothing_has_the_questions_time(tmp_path: Path) -> None:
    async def silent() -> httpx2.Response:
        async with endpoint(b"") as url:
            return await posted(tmp_path, url, seconds=1.5)

    answered = asyncio.run(silent())
    said = answered.json()
    assert (answered.status_code, said["decision"]) == (200, "abstain")
    assert said["reasons"] == ["MODEL_UNAVAILABLE: TooSlow"]


def test_a_run_has_its_patience_again() -> None:
    assert patience.get() == RetryPolicy(retries=3, longest=60.0)
