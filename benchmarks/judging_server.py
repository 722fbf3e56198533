"""An OpenAI-compatible server that replies to the prompts of our judges after a fixed delay, plausibly, and counts.

    python benchmarks/judging_server.py [DELAY_SECONDS]

Its client is that of ``mock_server``, which reads the counters. Replies are made from the schema and the number of
sections.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from mock_server import Chat, MockServer, main, running

_SENTENCE = re.compile(r"[^\s.][^.]*\.")


class JudgingChat(Chat):
    """One connection, kept alive."""

    def _answer(self, body: bytes) -> None:
        self._counters.in_flight -= 1
        if not self._transport.is_closing():
            self._transport.write(_streamed(json.dumps(reply_to(json.loads(body)))))


def reply_to(request: dict[str, Any]) -> dict[str, Any]:
    """Return a reply with everything that the schema asks for: every second verdict is a yes."""
    keys = request["response_format"]["json_schema"]["schema"]["properties"]
    user: str = request["messages"][-1]["content"]
    made: dict[str, Callable[[], Any]] = {
        "claims": lambda: [{"quote": each, "claim": each} for each in _sentences(user)],
        "questions": lambda: [f"What is said about {each[:40]}?" for each in (_sentences(user) * 3)[:3]],
        "noncommittal": lambda: keys["noncommittal"]["type"] == "integer" and 0,
        "verdicts": lambda: _verdicts(keys["verdicts"]["items"]["properties"], user),
        "statements": lambda: _statements(keys["statements"]["items"], user),
        "question": lambda: f"What is said about {_sentences(user)[0][:40]}?",
        "reason": lambda: "It says so.",
        "verdict": lambda: 1,
    }
    return {key: made[key]() for key in keys}


def _sentences(user: str) -> list[str]:
    text = re.split(r"<<(?:text|answer) \| \w+>>\n|\n<<end", user)
    return _SENTENCE.findall(next(part for part in reversed(text) if "<<" not in part and "." in part))


def _verdicts(asked: dict[str, Any], user: str) -> list[dict[str, Any]]:
    count, words = _count(user, "claim", "passage", "criterion"), asked["verdict"]["enum"]
    more = {"needs_source": True, "support": [{"passage": 1, "quote": "It says so.", "degree": "full"}]}
    by_passage = more if "support" in asked else {}
    quoted = {"quote": ""} if "quote" in asked else {}
    return [
        {"index": n, "verdict": words[n % 2], "passage": n % 2, **quoted, **by_passage} for n in range(1, count + 1)
    ]


def _count(user: str, *names: str) -> int:
    """Return how many sections have the first of these names that any has."""
    return next(filter(None, (user.count(f"<<{name} ") for name in names)), 0)


def _statements(items: dict[str, Any], user: str) -> list[Any]:
    if items["type"] == "string":
        return _sentences(user)
    count = user.count("<<statement ")
    return [{"statement": f"{n}", "reason": "It says so.", "verdict": n % 2} for n in range(count)]


def _streamed(text: str) -> bytes:
    choices = [{"delta": {"content": text}, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"}]
    events = [{"id": "mock", "object": "chat.completion.chunk", "model": "mock", "choices": [each]} for each in choices]
    body = "".join(f"data: {each}\n\n" for each in [*map(json.dumps, events), "[DONE]"]).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


def judging(delay: float) -> AbstractContextManager[MockServer]:
    """Run the server in a process of its own."""
    return running(delay, __file__)


if __name__ == "__main__":
    main(JudgingChat)
