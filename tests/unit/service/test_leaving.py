"""A client that leaves over a real connection: the model server stops, and the place is free again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from rag_harness.service.app import create_app
from rag_harness.service.options import Options
from rag_harness.service.server import opened
from rag_harness.service.state.folder import StateFolder
from rag_harness.settings.loading import load_settings
from tests.unit.service.listened import serving
from tests.unit.service.streaming_model import StreamingModel, streaming_model

BODIES = [
    ("/query", {"query": "lamps?"}, "text/event-stream"),
    ("/query", {"query": "lamps?"}, "application/json"),
    ("/v1/chat/completions", {"model": "e3", "messages": [{"role": "user", "content": "a"}], "stream": True}, "*/*"),
]


@pytest.mark.parametrize(("path", "body", "accept"), BODIES, ids=["events", "whole", "chat"])
def test_the_model_server_stops_within_a_second(tmp_path: Path, path: str, body: object, accept: str) -> None:
    async def leave() -> tuple[int, int, int]:
        async with streaming_model(every=0.05) as model:
            (tmp_path / "kb").mkdir()
            (tmp_path / "kb" / "lamps.md").write_text("# Lamps\n\nLamps can be returned within 45 days.\n")
            named = {"chat_model": "a/model", "chat_base_url": model.url, "chat_api_key": "k", "mode": "live"}
            settings = load_settings({"profile": "mock", **named}, rootdir=tmp_path)
            with StateFolder(tmp_path / "state") as state:
                options = Options("e3", state.path, tmp_path / "kb")
                with serving(create_app(lambda: opened(options, settings, state))) as port:
                    return await _left(port, path, json.dumps(body).encode(), accept, model)

    at_leaving, soon, writing = asyncio.run(leave())
    assert at_leaving >= 1
    assert soon - at_leaving <= 3
    assert writing == 0


async def _left(port: int, path: str, body: bytes, accept: str, model: StreamingModel) -> tuple[int, int, int]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: {accept}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    while not model.words:
        await asyncio.sleep(0.01)
    if accept != "application/json":
        await reader.readuntil(b"data: ")
    writer.close()
    at_leaving = model.words
    await asyncio.sleep(0.5)
    soon = model.words
    await asyncio.sleep(0.3)
    assert model.words == soon, "the model server still writes"
    return at_leaving, soon, model.writing
