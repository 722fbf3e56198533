"""Server-sent events, cut anywhere, are those that the SDK's own reader sees."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from rag_harness.core.errors import ModelOutputError
from rag_harness.models.completions import Events, StreamedCompletion, StreamError
from tests.unit.models.chat.test_openai import GOOD, event

LINES = st.sampled_from(
    [
        "",
        "data: a",
        "data:b",
        "data:  c",
        "data",
        ": a comment",
        "event: x",
        "id: 1",
        "data: [DONE]",
        "data: é€",
        "x: y",
    ]
)


@given(st.lists(LINES, max_size=12), st.sampled_from(["\n", "\r\n"]), st.lists(st.integers(0, 60), max_size=5))
def test_events_are_those_of_the_sdk(lines: list[str], end: str, cuts: list[int]) -> None:
    body = "".join(line + end for line in lines).encode()
    places = [0, *sorted(min(cut, len(body)) for cut in cuts), len(body)]
    events = Events()
    found = [data.decode() for start, stop in pairwise(places) for data in events.feed(body[start:stop])]
    theirs = [each.data for each in SSEDecoder().iter_bytes(iter([body])) if each.data]
    assert [each for each in found if each] == theirs


@given(st.lists(st.integers(0, len(GOOD)), max_size=8))
def test_an_answer_is_the_same_however_it_is_cut(cuts: list[int]) -> None:
    said = StreamedCompletion("asked/model")
    places = [0, *sorted(cuts), len(GOOD)]
    for start, stop in pairwise(places):
        said.add(GOOD[start:stop])
    assert (said.text(), said.model, said.is_done) == ("It costs €29.", "served/model", True)
    assert said.usage is not None
    assert (said.usage.prompt_tokens, said.usage.completion_tokens) == (11, 7)


def test_what_comes_after_the_end_is_not_read() -> None:
    said = StreamedCompletion("m")
    said.add(GOOD + event(" And more.") + b"data: no JSON\n\n")
    assert said.text() == "It costs €29."


@pytest.mark.parametrize(
    ("error", "message"),
    [({"message": "upstream died", "code": 502}, "upstream died"), ("oops", "oops"), ({"a": 1}, "")],
)
def test_an_error_in_the_stream(error: Any, message: str) -> None:
    with pytest.raises(StreamError, match=message or "An error occurred") as caught:
        StreamedCompletion("m").add(b"data: " + json.dumps({"error": error}).encode() + b"\n\n")
    assert caught.value.body == error


@pytest.mark.parametrize("data", [b"[1]", b"1", b"null", b"{", b"\xff"])
def test_what_is_no_object(data: bytes) -> None:
    with pytest.raises(ValueError):
        StreamedCompletion("m").add(b"data: " + data + b"\n\n")


def test_half_an_answer_and_one_without_text() -> None:
    half, empty = StreamedCompletion("m"), StreamedCompletion("m")
    half.add(event("It costs "))
    empty.add(event(finish="stop"))
    with pytest.raises(ConnectionError, match="broke off"):
        half.text()
    with pytest.raises(ModelOutputError, match="without any text"):
        empty.text()


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_why_the_model_stopped_is_kept(reason: str) -> None:
    """Usage ends a stream too, and is no reason."""
    said = StreamedCompletion("m")
    choice = {"delta": {"content": "30 days"}, "finish_reason": reason or None}
    last = {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
    said.add(f"data: {json.dumps(last)}\n\n".encode())
    assert (said.text(), said.finish_reason) == ("30 days", reason)


def test_an_answer_of_the_longest_length_passes_and_one_more_character_does_not() -> None:
    said = StreamedCompletion("asked/model", longest=5)
    said.add(event("four") + event("!", finish="stop"))
    assert said.text() == "four!"
    with pytest.raises(ModelOutputError, match=r"at least 6 characters, and 5 are taken.*max_answer in "):
        said.add(event("!"))


def test_a_line_in_ten_thousand_parts_is_joined_once() -> None:
    events, part = Events(), b"a" * 2_000
    assert not list(events.feed(b"data: "))
    began = time.process_time()
    for _ in range(10_000):
        assert not list(events.feed(part))
    (found,) = events.feed(b"\n\n")
    assert len(found) == 20_000_000
    assert time.process_time() - began < 2  # copied each time, it would be 100 GB


def test_an_event_of_endless_brackets_is_no_event() -> None:
    with pytest.raises(ValueError, match="nested deeper than 100 levels"):
        StreamedCompletion("asked/model").add(b"data: " + b"[" * 100_000 + b"\n\n")
