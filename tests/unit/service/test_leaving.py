"""Whoever leaves a real server in the middle of an answer ends the model's work on it, whichever way it was asked."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from rag_harness.service.app_state import Service
from rag_harness.service.database import StateFolder
from rag_harness.service.metrics import Metrics
from rag_harness.service.options import Options
from rag_harness.service.server import create_app
from rag_harness.service.traces import Traces
from tests.unit.service.listened import serving as listening
from tests.unit.service.served import Fixed, FixedCollections, serving_of
from tests.unit.service.streaming_model import StreamingModel, streaming_model

QUESTION = {"query": "When can lamps be returned?"}
CHAT = {"model": "e3", "stream": True, "messages": [{"role": "user", "content": "When can lamps be returned?"}]}


def app_of(folder: Path, url: str) -> Any:
    @asynccontextmanager
    async def opening() -> AsyncIterator[Service]:
        made = Options("e3", folder / "state")
        serving = serving_of(folder, "e3", mode="live", chat_model="some/model", chat_base_url=url)
        with StateFolder(made.state) as state:
            traces = Traces(state.database, made.trace_days, made.trace_content)
            traces.start()
            yield Service(made, FixedCollections(Fixed(serving)), state, traces, Metrics())
            await traces.stop()
            await cast("Any", serving.experiment.pipeline).generator.chat.aclose()

    return create_app(opening)


async def left(port: int, path: str, body: dict[str, Any], accept: str, model: StreamingModel, first: bytes) -> None:
    """Ask, read up to ``first``, or wait until the model writes where nothing is read; and break the connection off."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\naccept: {accept}\r\n"
    writer.write(f"{head}content-length: {len(content)}\r\n\r\n".encode() + content)
    if first:
        await asyncio.wait_for(reader.readuntil(first), 30)
    until = time.monotonic() + 30
    while not model.words and time.monotonic() < until:
        await asyncio.sleep(0.005)
    writer.transport.abort()


@pytest.mark.parametrize(
    ("path", "body", "accept", "first"),
    [
        ("/query", QUESTION, "text/event-stream", b"event: token"),
        ("/v1/chat/completions", CHAT, "*/*", b'"content":"word'),
        ("/query", QUESTION, "application/json", b""),
    ],
    ids=["events", "as OpenAI", "at once"],
)
def test_the_model_stops_within_a_second(
    tmp_path: Path, path: str, body: dict[str, Any], accept: str, first: bytes
) -> None:
    async def leaving() -> tuple[float, int]:
        async with streaming_model(every=0.02) as model:
            with listening(app_of(tmp_path, model.url)) as port:
                await left(port, path, body, accept, model, first)
                began = time.monotonic()
                while model.writing and time.monotonic() - began < 10:
                    await asyncio.sleep(0.005)
                took, words = time.monotonic() - began, model.words
                await asyncio.sleep(0.1)  # time for five words
                assert model.words == words > 0
                return took, model.writing

    took, writing = asyncio.run(leaving())
    assert writing == 0
    # The machine may be busy; 10 s would be for ever.
    assert took < 5
