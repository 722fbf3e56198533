"""A chat server on 127.0.0.1 that writes a word every few milliseconds, for ever, and counts its words."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

from tests.unit.models.chat.test_openai_chat import event

_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@dataclass
class StreamingModel:
    """``words`` were sent so far, by ``writing`` answers that are under way."""

    every: float = 0.05
    url: str = ""
    words: int = 0
    writing: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writing += 1
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(_HEAD)
            await self._write(writer)
        self.writing -= 1
        writer.close()

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        text = '{"answer": "word'
        while not writer.transport.is_closing():
            piece = event(text)
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
            self.words += 1
            text = " word"
            await asyncio.sleep(self.every)


@asynccontextmanager
async def streaming_model(every: float = 0.05) -> AsyncIterator[StreamingModel]:
    model = StreamingModel(every)
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield model
    finally:
        server.close()
