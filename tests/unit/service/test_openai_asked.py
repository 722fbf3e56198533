"""What a chat front end sends becomes a question and what was said before it; all else is refused in OpenAI's words."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_harness.models.reader import RequestError
from rag_harness.service.openai_api import ChatQuestion, asked_of
from rag_harness.studies.conversations import messages_of

HELLO = {"role": "user", "content": "Hello."}
HI = {"role": "assistant", "content": "Hi."}
LAMP = {"role": "user", "content": "How long may I return a lamp?"}


def read(*messages: Any, **more: Any) -> ChatQuestion:
    return asked_of({"model": "r1", "messages": list(messages), **more}, "r1")


def test_the_last_message_of_the_user_is_the_question_and_the_rest_is_history() -> None:
    asked = read({"role": "system", "content": "You are a pirate."}, HELLO, HI, LAMP)
    assert asked == ChatQuestion("How long may I return a lamp?", (HELLO, HI))
    assert list(asked.history) == [HELLO, HI]
    turns = messages_of(asked.history)
    assert turns is not None
    assert [turn.role for turn in turns] == ["user", "assistant"]


def test_a_first_question_has_no_history() -> None:
    assert read(LAMP).history == ()


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "How long"}, {"type": "text", "text": "for a lamp?"}]
    assert read({"role": "user", "content": parts}).query == "How long\nfor a lamp?"
    refused = {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert read(refused, LAMP).history == ({"role": "assistant", "content": "No."},)


def test_what_is_neither_users_nor_assistants_is_left_out() -> None:
    call: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": []}
    assert read({"role": "developer", "content": 7}, call, {"role": "tool", "content": "x"}, LAMP).history == ()


def test_what_stands_behind_the_question_is_no_part_of_it() -> None:
    assert read(LAMP, {"role": "assistant", "content": "Within"}) == ChatQuestion(LAMP["content"], ())


@pytest.mark.parametrize(
    ("sent", "stream", "usage"),
    [
        ({}, False, False),
        ({"stream": None, "stream_options": None}, False, False),
        ({"stream": True}, True, False),
        ({"stream": True, "stream_options": {"include_usage": True}}, True, True),
        (
            {"temperature": 2, "tools": [{"type": "function"}], "n": 1, "response_format": {"type": "text"}},
            False,
            False,
        ),
    ],
)
def test_how_it_is_to_be_sent(sent: dict[str, Any], stream: bool, usage: bool) -> None:
    asked = read(LAMP, **sent)
    assert (asked.stream, asked.include_usage) == (stream, usage)


@pytest.mark.parametrize(
    ("change", "param", "found"),
    [
        ({"messages": None}, "messages", "None"),
        ({"messages": []}, "messages", "list"),
        ({"messages": {}}, "messages", "dict"),
        ({"messages": ["hi"]}, "messages[0]", "'hi'"),
        ({"messages": [{"role": "boss", "content": "hi"}]}, "messages[0].role", "'boss'"),
        ({"messages": [{"role": ["user"], "content": "hi"}]}, "messages[0].role", "list"),
        ({"messages": [HI, {"role": "system", "content": "hi"}]}, "messages", "'assistant'"),
        ({"messages": [HELLO, {"role": "user", "content": " \n"}]}, "messages", "''"),
        ({"messages": [{"role": "user"}]}, "messages", "''"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content", "7"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]", "'image_url'"),
        ({"messages": [{"role": "user", "content": ["hi"]}]}, "messages[0].content[0]", "'hi'"),
        ({"messages": [{"role": "user", "content": [{"type": "text"}]}]}, "messages[0].content[0].text", "None"),
        ({"messages": [{"role": "user", "content": "a\ud83d"}]}, "messages[0].content", "'a\\ud83d'"),
        ({"stream": "yes"}, "stream", "'yes'"),
        ({"stream": 1}, "stream", "1"),
        ({"stream_options": "x"}, "stream_options", "'x'"),
        ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage", "1"),
        ({"n": 2}, "n", "2"),
        ({"response_format": {"type": "json_object"}}, "response_format", "dict"),
        ({"response_format": "json"}, "response_format", "'json'"),
    ],
)
def test_what_cannot_be_answered_is_refused(change: dict[str, Any], param: str, found: str) -> None:
    with pytest.raises(RequestError) as caught:
        asked_of({"model": "r1", "messages": [LAMP], **change}, "r1")
    error = caught.value.body["error"]
    assert (caught.value.status, error["type"], error["param"]) == (400, "invalid_request_error", param)
    assert str(error["message"]).startswith(f"'{param}' ")
    assert str(error["message"]).endswith(f"found {found}.")


@pytest.mark.parametrize("model", ["gpt-4", None, "r1 ", "x" * 10_000, [[]]])
def test_another_model_is_not_there(model: Any) -> None:
    with pytest.raises(RequestError) as caught:
        asked_of({"model": model, "messages": [LAMP]}, "r1")
    assert (caught.value.status, caught.value.body["error"]["code"]) == (404, "model_not_found")
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("body", [None, [], "x", 7])
def test_a_body_that_is_no_object(body: Any) -> None:
    with pytest.raises(RequestError, match="must be a JSON object"):
        asked_of(body, "r1")


def test_a_deep_nest_is_refused_in_few_words() -> None:
    deep: Any = "x"
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(RequestError) as caught:
        read({"role": "user", "content": deep})
    assert len(str(caught.value)) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
ROLES = st.sampled_from(["user", "assistant", "system", "tool"])
MESSAGES = st.lists(JSON | st.fixed_dictionaries({"role": ROLES | JSON, "content": JSON}), max_size=4)
NAMES = ("stream", "stream_options", "n", "response_format")


@given(MESSAGES | JSON, st.dictionaries(st.sampled_from(NAMES), JSON, max_size=2))
def test_whatever_comes_is_read_or_refused(messages: Any, more: dict[str, Any]) -> None:
    try:
        asked = asked_of({"model": "r1", "messages": messages, **more}, "r1")
    except RequestError as error:
        json.dumps(error.body).encode()
        return
    assert asked.query.strip()
    assert all(turn["role"] in ("user", "assistant") for turn in asked.history)
