"""Tools of OpenAI's protocol: offered in a request, heard in pieces from a stream, and answered by a message."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.types import Message, ToolCall
from rag_harness.models.call_context import MOST_CALLS, StreamedToolCalls, offering, sent_message
from rag_harness.models.completions import StreamedCompletion
from tests.unit.models.chat.test_openai import DONE, GOOD, Waits, ask, event, stream
from tests.unit.server import serving

TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}


def pieces(*said: dict[str, Any], finish: str | None = None) -> bytes:
    chunk = {"model": "m", "choices": [{"index": 0, "delta": {"tool_calls": [*said]}, "finish_reason": finish}]}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


def piece(place: int, arguments: str, call_id: str = "", name: str = "") -> dict[str, Any]:
    named = {"id": call_id, "type": "function"} if call_id else {}
    return {"index": place, **named, "function": {**({"name": name} if name else {}), "arguments": arguments}}


CALLED = (
    pieces(piece(0, '{"query"', "c1", "search"))
    + pieces(piece(0, ': "lamp"}'), piece(1, '{"query": "refund"}', "c2", "search"))
    + event(finish="tool_calls")
    + event(usage=(11, 7))
    + DONE
)
CALLS = (ToolCall("c1", "search", '{"query": "lamp"}'), ToolCall("c2", "search", '{"query": "refund"}'))


def test_tools_are_sent_and_the_calls_of_the_reply_are_put_together() -> None:
    with serving(stream(CALLED)) as server, offering([TOOL]):
        said = ask(server, Waits())
    assert (said.tool_calls, said.text, said.finish_reason) == (CALLS, "", "tool_calls")
    assert said.ttft_ms is not None
    assert server.requests[0]["tools"] == [TOOL]


def test_a_request_without_tools_is_what_it_was() -> None:
    with serving(stream(GOOD)) as server:
        assert ask(server, Waits()).tool_calls == ()
    assert "tools" not in server.requests[0]
    assert server.requests[0]["messages"] == [{"role": "user", "content": "How much?"}]


def test_calls_that_nobody_offered_are_no_answer() -> None:
    with serving(stream(CALLED)) as server, pytest.raises(ModelOutputError, match="without any text"):
        ask(server, Waits())


def test_messages_say_what_was_called_and_what_came_of_it() -> None:
    assert sent_message(Message("user", "?")) == {"role": "user", "content": "?"}
    assert sent_message(Message("assistant", "", CALLS[:1])) == {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"query": "lamp"}'}}
        ],
    }
    assert sent_message(Message("tool", "a page", call_id="c1")) == {
        "role": "tool",
        "content": "a page",
        "tool_call_id": "c1",
    }


@pytest.mark.parametrize(
    "strange",
    [None, {}, "x", [None], ["x"], [{"index": "0"}], [{"index": -1}], [{"index": MOST_CALLS}], [{"index": 10**12}]],
)
def test_what_is_no_piece_of_a_call_is_left_out(strange: Any) -> None:
    heard = StreamedToolCalls()
    heard.add(strange)
    assert heard.calls() == ()


def test_a_piece_without_a_function_is_a_call_without_a_name() -> None:
    heard = StreamedToolCalls()
    heard.add([{"function": 3}])
    assert heard.calls() == (ToolCall("", "", ""),)


def test_arguments_without_an_end_are_cut_off() -> None:
    said = StreamedCompletion("m", longest=1_000)
    with pytest.raises(ModelOutputError):
        said.add(pieces(piece(0, "x" * 50)) * 100)


def test_tools_are_offered_in_their_block_alone() -> None:
    async def run() -> tuple[int, int]:
        from rag_harness.models.call_context import offered

        with offering([TOOL]):
            inside = len(offered.get())
        return inside, len(offered.get())

    assert asyncio.run(run()) == (1, 0)
