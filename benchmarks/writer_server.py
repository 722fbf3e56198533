"""A chat server that writes the page that it is asked for, as the embedded writer would, after a fixed delay.

As ``mock_server``, whose client reads its counters. Run with the plan's file in PLAN.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mock_server import Chat, main

from rag_harness.authoring.kb.page_grammar import compose
from rag_harness.authoring.kb.plan import briefs, read_plan

_NAMED = re.compile(r'^ "filename": "([^"]+)"', re.MULTILINE)
_PAGES: dict[str, bytes] = {}


class WritingChat(Chat):
    """One connection, kept alive."""

    def _answer(self, body: bytes) -> None:
        self._counters.in_flight -= 1
        if not self._transport.is_closing():
            self._transport.write(_PAGES[_NAMED.findall(json.loads(body)["messages"][1]["content"])[0]])


def streamed(text: str) -> bytes:
    """Return the answer of a server that streams."""
    choices = [{"delta": {"content": text}, "finish_reason": None}, {"delta": {}, "finish_reason": "stop"}]
    events = [{"id": "mock", "object": "chat.completion.chunk", "model": "mock", "choices": [each]} for each in choices]
    body = "".join(f"data: {each}\n\n" for each in [*map(json.dumps, events), "[DONE]"]).encode()
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


if __name__ == "__main__":
    plan, _ = read_plan(Path(os.environ["PLAN"]))
    assert plan is not None
    _PAGES |= {brief.page.filename: streamed(compose(brief, 0)) for brief in briefs(plan)}
    main(WritingChat)
