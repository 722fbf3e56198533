"""An OpenAI-compatible chat server that answers every question after a fixed delay, and counts.

    python benchmarks/mock_server.py [DELAY_SECONDS]

It prints its port, and serves 127.0.0.1 until it is ended. Raw HTTP on one asyncio protocol: some 0.1 ms a call, so
that it is never the bottleneck; ``GET /stats`` says what it cost. ``POST /reset`` sets the counters to zero.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

ANSWER = '{"answer": "Returns are free for 30 days."}'


@dataclass
class Counters:
    """Calls and connections that came, calls in flight now and at most, processor seconds at the last reset."""

    calls: int = 0
    connections: int = 0
    in_flight: int = 0
    most: int = 0
    cpu_before: float = 0.0
    at: list[float] = field(default_factory=list)

    @property
    def busiest_minute(self) -> int:
        """How many calls came in the 60 s in which most did."""
        first = most = 0
        for last, now in enumerate(self.at):
            while self.at[first] <= now - 60:
                first += 1
            most = max(most, last - first + 1)
        return most


class Chat(asyncio.Protocol):
    """One connection, kept alive."""

    def __init__(self, counters: Counters, delay: float) -> None:
        self._counters, self._delay = counters, delay
        self._buffer = b""
        self._transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        self._counters.connections += 1

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        length = _content_length(head)
        if not end or len(rest) < length:
            return
        self._buffer = rest[length:]
        self._serve(head.split(b" ", 2)[1], rest[:length])

    def _serve(self, path: bytes, body: bytes) -> None:
        if path.endswith(b"/chat/completions"):
            self._counters.calls += 1
            self._counters.at.append(time.monotonic())
            self._counters.in_flight += 1
            self._counters.most = max(self._counters.most, self._counters.in_flight)
            asyncio.get_running_loop().call_later(self._delay, self._answer, body)
        elif path == b"/stats":
            self._transport.write(_plain(self._stats()))
        else:
            vars(self._counters).update(vars(Counters(cpu_before=time.process_time())))
            self._transport.write(_plain({}))

    def _stats(self) -> dict[str, float]:
        counters = self._counters
        cpu = time.process_time() - counters.cpu_before
        return {
            "calls": counters.calls,
            "connections": counters.connections,
            "most": counters.most,
            "cpu": cpu,
            "a minute": counters.busiest_minute,
        }

    def _answer(self, body: bytes) -> None:
        self._counters.in_flight -= 1
        if not self._transport.is_closing():
            self._transport.write(STREAMED if json.loads(body).get("stream") else WHOLE)


def _content_length(head: bytes) -> int:
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return int(value)
    return 0


def _plain(content: Any) -> bytes:
    body = json.dumps(content).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def _completion(kind: str, choices: list[dict[str, Any]], usage: dict[str, int] | None) -> dict[str, Any]:
    return {"id": "mock", "object": kind, "created": 1, "model": "mock", "choices": choices, "usage": usage}


_USAGE = {"prompt_tokens": 40, "completion_tokens": 12, "total_tokens": 52}
WHOLE = _plain(
    _completion(
        "chat.completion",
        [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}],
        _USAGE,
    )
)


def _streamed() -> bytes:
    """Return a stream of a few pieces, as servers send short answers."""
    third = len(ANSWER) // 3
    pieces = [ANSWER[:third], ANSWER[third : 2 * third], ANSWER[2 * third :]]
    deltas: list[dict[str, Any]] = [{"delta": {"content": each}, "finish_reason": None} for each in pieces]
    events = [
        _completion("chat.completion.chunk", [{"index": 0, **each}], None)
        for each in [*deltas, {"delta": {}, "finish_reason": "stop"}]
    ]
    events.append(_completion("chat.completion.chunk", [], _USAGE))
    body = "".join(f"data: {each}\n\n" for each in [*map(json.dumps, events), "[DONE]"]).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


STREAMED = _streamed()


async def _serve(connection: type[Chat], delay: float) -> None:
    counters = Counters()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: connection(counters, delay), "127.0.0.1", 0, backlog=512)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main(connection: type[Chat] = Chat) -> None:
    """Serve such connections until the process is ended, with the delay that the command line names."""
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_serve(connection, float(sys.argv[1]) if len(sys.argv) > 1 else 0.2))


class MockServer:
    """The client's side: its address and counters."""

    def __init__(self, port: int) -> None:
        self.origin = f"http://127.0.0.1:{port}"
        self.url = f"{self.origin}/v1"

    def reset(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.origin}/reset", data=b"", method="POST")).read()

    def stats(self) -> dict[str, float]:
        """Return calls, connections, most in flight, and processor seconds, since the last reset."""
        found: dict[str, float] = json.loads(urllib.request.urlopen(f"{self.origin}/stats").read())
        return found


@contextlib.contextmanager
def running(delay: float, script: str = __file__) -> Iterator[MockServer]:
    """Run the server that ``script`` is in a process of its own."""
    command = [sys.executable, script, str(delay)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield MockServer(int(process.stdout.readline()))
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
