"""A listener gets an answer while it arrives: from a stream, from a recording, and from the start after a retry."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.types import Completion, Message, ToolCall, Usage
from rag_harness.models.calls import MOST_CALLS, StreamedToolCalls, hearing, listening, offering, sent_message
from rag_harness.models.completions import StreamedCompletion, completion_of
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.pipelines.trace import Trace, watching
from tests.unit.hits import hits_of
from tests.unit.models.chat.test_openai_chat import DONE, GOOD, Waits, ask, event, stream
from tests.unit.pipelines.mock_parts import parts_of, write_kb
from tests.unit.server import serving

BEGINS = "<begins>"


class Ear:
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def begins(self) -> None:
        self.heard.append(BEGINS)

    def hears(self, text: str) -> None:
        self.heard.append(text)


def test_a_stream_is_heard_piece_by_piece_across_the_tasks_of_a_call() -> None:
    with serving(stream()) as server, hearing(ear := Ear()):
        completion = ask(server, Waits())
    assert ear.heard == [BEGINS, "It costs ", "€29."]
    assert completion.text == "It costs €29."
    assert listening.get() is None


def test_after_a_break_the_listener_starts_over() -> None:
    with serving(stream(event("It co"), reset=True, length=999), stream()) as server, hearing(ear := Ear()):
        completion = ask(server, waits := Waits())
    assert (completion.text, completion.retries, len(waits)) == ("It costs €29.", 1, 1)
    assert ear.heard == [BEGINS, "It co", BEGINS, "It costs ", "€29."]


def test_a_call_that_fails_for_good_has_begun_four_times() -> None:
    with serving(stream(event("It co"))) as server, hearing(ear := Ear()), pytest.raises(ModelCallError):
        ask(server, Waits())
    assert ear.heard == [BEGINS, "It co"] * 4


def test_a_recording_is_heard() -> None:
    with hearing(ear := Ear()):
        found = completion_of(Recorded(200, "text/event-stream", GOOD, 10.0, 1.0), "m")
    assert found is not None
    assert "".join(ear.heard) == f"{BEGINS}{found.text}"


def test_nothing_is_heard_where_nobody_listens() -> None:
    said = StreamedCompletion("m")
    said.add(GOOD)
    assert said.listener is None


def test_the_embedded_reader_is_heard_in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = parts_of(write_kb(tmp_path, {"a.md": "# A\n"}, monkeypatch), profile="embedded", mode="live")

    async def said() -> str:
        source = "[Source 1: lamps.md] You can return a lamp within 45 days, together with all that came with it."
        asked = Message("user", f"Context:\n{source}\n\nQuestion: Within how many days can I return a lamp?")
        with hearing(ear):
            return (await parts.chat().complete([asked])).text

    ear = Ear()
    text = asyncio.run(said())
    assert ear.heard[0] == BEGINS
    assert len(ear.heard) > 2, "it came at once"
    assert "".join(ear.heard[1:]) == text


class Speaks:
    """A model that speaks to whoever listens."""

    model = "m"

    async def complete(self, messages: object, response_format: object = None) -> Completion:
        if (listener := listening.get()) is not None:
            listener.begins()
            listener.hears("word")
        return Completion("word", "m", Usage(), 0.0)


class Watches(Ear):
    """Keeps what it is shown."""

    def answering(self, context: object, in_json: bool) -> Watches:
        self.heard.append(f"{len(context)} {in_json}")  # type: ignore[arg-type]
        return self


@pytest.mark.parametrize(
    ("stage", "role", "heard"),
    [
        ("generate", "answer", ["2 True", BEGINS, "word"]),
        ("again", "answer", []),
        ("generate", "judge", []),
        ("plan", "rewrite", []),
    ],
)
def test_only_the_answer_is_shown_to_whoever_watches(stage: str, role: str, heard: list[str]) -> None:
    watcher = Watches()
    with watching(watcher):
        asyncio.run(Trace(context=hits_of(["a", "b"])).complete(Speaks(), [], {}, stage, role))
    assert watcher.heard == heard


def test_a_watcher_learns_what_was_asked_for_in_plain_words_and_hears_nothing_behind_the_block() -> None:
    watcher = Watches()
    with watching(watcher):
        asyncio.run(Trace().complete(Speaks(), []))
    asyncio.run(Trace().complete(Speaks(), []))
    assert watcher.heard == ["0 False", BEGINS, "word"]


# Tools of OpenAI's protocol: offered in a request, heard in pieces from a stream, and answered by a message.

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
        from rag_harness.models.calls import offered

        with offering([TOOL]):
            inside = len(offered.get())
        return inside, len(offered.get())

    assert asyncio.run(run()) == (1, 0)
