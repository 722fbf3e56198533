from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.json_text import DEEPEST_JSON
from rag_harness.core.settings.endpoints import EndpointSpec, StreamReading
from rag_harness.pipelines.endpoint.decoders import decoder_of, parsed_json

NAMED = (
    b": a comment\r\n\r\n"
    b'event: retrieval\ndata: {"contexts": [1]}\n\n'
    b'event: token\ndata: {"t": "45 "}\n\n'
    b'event: token\ndata: {"t": "d\xc3\xa4ys"}\n\n'
    b"event: ping\ndata: still\ndata: here\n\n"
    b'event: done\ndata: {"confidence": 0.5}\n\n'
)
CHAT = (
    b'data: {"model": "m-1", "choices": [{"delta": {"role": "assistant"}}]}\n\n'
    b'data: {"choices": [{"delta": {"content": "45 "}}], "citations": ["a.md"]}\n\n'
    b'data: {"choices": [{"delta": {"content": "days"}, "finish_reason": "stop"}]}\n\n'
    b'data: {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}\n\ndata: [DONE]\n\n'
)


def heard(content: bytes, kind: str = "sse", cut: int = 7, **stream: str) -> Any:
    spec = EndpointSpec("my_service", "http://h/", kind, stream=StreamReading(**stream))
    found = decoder_of(spec, "text/event-stream; charset=utf-8")
    for start in range(0, len(content), cut):
        found.add(content[start : start + cut])
    return found


@given(st.integers(1, len(NAMED)))
def test_events_by_name_add_up_wherever_the_stream_is_cut(cut: int) -> None:
    found = heard(NAMED, cut=cut, text="t", final="done")
    assert found.first is not None
    assert found.document() == {
        "streamed": "45 däys",
        "events": {"retrieval": [{"contexts": [1]}], "ping": ["still\nhere"]},
        "confidence": 0.5,
    }


def test_data_without_a_path_are_the_text() -> None:
    found = heard(b"data: 45 \n\ndata: days\n\ndata: [DONE]\n\n", token="message")
    assert found.document()["streamed"] == "45 days"


def test_what_replaces_withdraws_what_was_streamed() -> None:
    found = heard(b"event: token\ndata: wrong\n\nevent: replace\ndata: I don't know.\n\n")
    assert found.document()["streamed"] == "I don't know."


def test_a_stream_that_breaks_off_before_its_end_is_no_answer() -> None:
    with pytest.raises(
        ConnectionError, match=r"before its event 'done' \(of other names: 'retrieval', 'ping'\); 2 pieces"
    ):
        heard(NAMED.partition(b"event: done")[0], text="t", final="done").document()


def test_an_error_event_is_the_services_own() -> None:
    with pytest.raises(ModelCallError, match="my_service says that it failed: no index"):
        heard(b"event: error\ndata: no index\n\n")


def test_a_token_without_its_text_is_named() -> None:
    with pytest.raises(ModelOutputError, match=r"stream.text = 'text' finds no text in an event. At \$ there is .*'t'"):
        heard(NAMED, text="text")
    assert heard(NAMED, text="text?").document()["streamed"] == ""


def test_an_event_that_is_no_json_is_named() -> None:
    with pytest.raises(ModelOutputError, match="an event of its stream answered with"):
        heard(b"event: done\ndata: {\n\n", final="done")


@pytest.mark.parametrize("cut", [1, 13, 10_000])
def test_a_streamed_completion_reads_as_a_plain_one(cut: int) -> None:
    found = heard(CHAT, "openai", cut)
    assert found.first is not None
    assert found.document() == {
        "model": "m-1",
        "citations": ["a.md"],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2},
        "choices": [{"message": {"role": "assistant", "content": "45 days"}, "finish_reason": "stop"}],
    }


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        (CHAT.partition(b'"days"')[0], ConnectionError, "broke off before its end"),
        (b'data: {"error": {"message": "busy"}}\n\n', ModelCallError, "busy"),
        (b"data: [1]\n\n", ModelOutputError, "is no object"),
        (b'data: {"choices": {"a": 1}}\n\n', ModelOutputError, "choices of an event .* an object with 'a'"),
        (b'data: {"choices": [1]}\n\n', ModelOutputError, r"choices\[0\] of an event .* the number 1"),
        (b'data: {"choices": [{"delta": 5}]}\n\n', ModelOutputError, "an object with 'delta'"),
        (b'data: {"choices": [{"delta": {"content": [1]}}]}\n\n', ModelOutputError, "delta.content of .* a list of 1"),
    ],
)
def test_a_completion_that_is_none(content: bytes, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        heard(content, "openai").document()


def test_the_response_of_a_tool_is_the_message_with_a_result() -> None:
    stream = b'data: {"method": "notifications/progress"}\n\ndata: {"id": 1, "result": {"content": []}}\n\n'
    assert heard(stream, "mcp").document() == {"id": 1, "result": {"content": []}}
    with pytest.raises(ConnectionError, match="before the response came"):
        heard(stream[:40], "mcp").document()


def test_json_in_place_of_a_stream_is_read_as_json() -> None:
    found = decoder_of(EndpointSpec("a", "http://h/", "openai"), "application/json")
    found.add(b'{"a": ')
    found.add(b"1}")
    assert (found.document(), found.first) == ({"a": 1}, None)


def test_an_event_of_an_empty_name_is_a_message() -> None:
    assert heard(b"event:\ndata: 45 days\n\n", token="message").document()["streamed"] == "45 days"


@pytest.mark.parametrize(
    ("content", "kind", "said"),
    [
        (b"<html><body>Login</body></html>", "text/html; charset=utf-8", "text/html that is no JSON but a page"),
        (b'{"answer": "45 da', "application/json", "it looks cut short"),
        (b'{"answer": "45 days"', "application/json", "it looks cut short"),
        (b"nope", "text/plain", "text/plain that is no JSON"),
        (b"", "application/json", "answered with nothing"),
        (b' \xff{"a": 1}', "application/json", "no UTF-8, at byte 1"),
        (b'{"score": NaN}', "application/json", "NaN is no JSON"),
        (b"[" * 10_000 + b"]" * 10_000, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b"[" * 1_000_000, "application/json", f"nested deeper than {DEEPEST_JSON} levels"),
        (b"9" * 5000, "application/json", "no JSON"),
    ],
)
def test_what_is_no_answer_is_named(content: bytes, kind: str, said: str) -> None:
    with pytest.raises(ModelOutputError) as error:
        parsed_json(content, "my_service", kind)
    assert said in str(error.value)
    assert str(error.value).startswith("my_service answered with")
    assert len(error.value.raw) <= 4000


def test_a_mark_of_byte_order_and_breadth_are_no_fault() -> None:
    assert parsed_json(b'\xef\xbb\xbf{"a": 1}', "a", "") == {"a": 1}
    assert len(parsed_json(b"[" + b",".join([b"[]"] * 5000) + b"]", "a", "")) == 5000
    assert parsed_json(b"[" * DEEPEST_JSON + b"]" * DEEPEST_JSON, "a", "") is not None
