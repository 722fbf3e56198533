"""An OpenAI-compatible endpoint on 127.0.0.1 that counts who asked what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from time import monotonic, sleep
from typing import Any

from tests.model_server import ModelServer
from tests.plugin.conftest import Suite
from tests.serving import running

Reply = Callable[[Any], str]
"""A request's body -> what the model says."""


class CountingServer(ModelServer):
    """Answers every question after ``delay`` seconds, with what ``reply`` says."""

    def __init__(self, delay: float, reply: Reply) -> None:
        super().__init__(_Handler)
        self.delay, self.reply = delay, reply
        self.first_token: Callable[[Any], Mapping[str, float]] = _states_none
        self.refused = ""
        """A key of a request's body that the server does not take."""
        self.answered: dict[str, float] = {}
        """When the last byte of the last answer to a question was sent, by ``monotonic``."""
        self.in_flight = self.most = 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # an answer behind its headers would wait 40 ms for the client's word of these
    server: CountingServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        question = _question(body)
        with self.server.lock:
            self.server.calls[question] += 1
            self.server.in_flight += 1
            self.server.most = max(self.server.most, self.server.in_flight)
        sleep(self.server.delay)
        with self.server.lock:
            self.server.in_flight -= 1
        with suppress(OSError):
            if self.server.refused in body:
                self._send(400, "application/json", _refusal(self.server.refused))
            else:
                self._answer(self.server.reply(body), self.server.first_token(body))
                self.server.answered[question] = monotonic()

    def _answer(self, text: str, first: Mapping[str, float]) -> None:
        delta = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
        if first:
            likely = [{"token": token, "logprob": logprob} for token, logprob in first.items()]
            delta["choices"][0]["logprobs"] = {"content": [{"token": text, "logprob": -1, "top_logprobs": likely}]}
        usage = {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}
        head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "counting"}
        lines = [*(f"data: {json.dumps({**head, **each})}\n\n" for each in (delta, usage)), "data: [DONE]\n\n"]
        self._send(200, "text/event-stream", "".join(lines).encode())

    def _send(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None:
        """Keep the output of the tests quiet."""


def _states_none(_body: Any) -> Mapping[str, float]:
    return {}


def _refusal(key: str) -> bytes:
    return json.dumps({"error": {"message": f"Unsupported parameter: {key!r}", "param": key}}).encode()


def _question(body: Any) -> str:
    return str(body["messages"][-1]["content"]).rpartition("Question: ")[2].strip()


def _about(body: Any) -> str:
    return json.dumps({"answer": f"about {_question(body)}"})


@contextmanager
def counting_server(delay: float, reply: Reply = _about) -> Iterator[CountingServer]:
    """Serve until the block is left."""
    with running(CountingServer(delay, reply)) as server:
        yield server


def let_ask(suite: Suite, server: CountingServer, queries: int) -> Suite:
    """Make ``suite`` one test of E1 on that many queries, answered by ``server`` in the profile ``counting``."""
    (suite.path / "pyproject.toml").write_text(_profile_of(server))
    for file in suite.path.glob("test_*.py"):
        file.unlink()
    suite.pytester.makepyfile(test_e1=_TEST)
    suite.write_queries([{"query_id": f"q{n}", "query": f"question {n}"} for n in range(queries)])
    return suite


_TEST = """
import pytest

@pytest.mark.e1
def test_answers(rag_result):
    assert rag_result.ok, rag_result.why
"""


def _profile_of(server: CountingServer) -> str:
    return (
        "[tool.rag_harness.profiles.counting]\n"
        f'chat_model = "counting"\nchat_base_url = "{server.url}"\nchat_api_key_env = ""\n'
        'embed_model = "mock/hashed-words"\nembed_base_url = ""\nrerank_model = "mock/word-overlap"\n'
    )
