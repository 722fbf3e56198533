"""``/v1``: what a chat front end sends and gets is in OpenAI's shape, held against the unmodified SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai import APIError, AsyncOpenAI, AuthenticationError, BadRequestError, InternalServerError, NotFoundError
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from rag_harness.core.errors import CriticalError
from rag_harness.core.types import Answer, Call, Hit, PipelineOutput, Stage, Usage
from rag_harness.models.reader import RequestError
from rag_harness.pipelines.trace import Trace
from rag_harness.service import keys
from rag_harness.service.answer_stream import AnswerEvent, Shows, events
from rag_harness.service.corpus.contents import Serving
from rag_harness.service.openai_api import WITHDRAWN, ChatQuestion, Completion, asked_of, error_body, models, usage_of
from rag_harness.studies.conversations import messages_of
from tests.unit.service.served import PAGES, said_by, serving_app, serving_of
from tests.unit.service.test_answer_stream import QUERY, SPLIT, Searches, Streams, Waits, body, reliable
from tests.unit.service.test_query import Says, passed
from tests.unit.studies.reliability.test_reliability import ANSWER

# What a chat front end sends becomes a question and what was said before it; all else is refused in OpenAI's words.

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


# Answers in OpenAI's shape, read by the unmodified SDK: text, citations, tokens, errors.

MADE = Completion("r1", "chatcmpl-1", 1_700_000_000)
CITED = {
    "answer_start": 0,
    "answer_end": 36,
    "source": 1,
    "document": "returns.md",
    "section": "Shop > Returns",
    "page": None,
    "url": "https://shop.example/returns",
    "quote": "You can return a lamp within 45 days.",
    "start": 0,
    "end": 37,
}
BODY: dict[str, Any] = {
    "answer": ANSWER,
    "citations": [CITED, {**CITED, "url": None}],
    "confidence": 0.8,
    "decision": "pass",
    "reasons": [],
    "history_read": None,
    "usage": {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12},
}
Chunks = list[dict[str, Any]]


def of(*said: AnswerEvent) -> AsyncGenerator[AnswerEvent, None]:
    async def each() -> AsyncGenerator[AnswerEvent, None]:
        for event in said:
            yield event

    return each()


def streamed(*said: AnswerEvent, include_usage: bool = False) -> Chunks:
    async def all_of() -> Chunks:
        return [chunk async for chunk in MADE.chunks(of(*said), include_usage)]

    return asyncio.run(all_of())


def content_of(chunks: Sequence[Mapping[str, Any]]) -> str:
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


def token(text: str) -> AnswerEvent:
    return AnswerEvent("token", {"text": text})


def done(**change: Any) -> list[AnswerEvent]:
    said = {**BODY, **change}
    return [
        *(AnswerEvent("citation", each) for each in said["citations"]),
        AnswerEvent("done", {**said, "citations": ()}),
    ]


def test_a_whole_answer_is_what_the_sdk_takes_for_one() -> None:
    said = ChatCompletion.model_validate(json.loads(json.dumps(MADE.whole(BODY))), strict=True)
    [choice] = said.choices
    assert (said.model, said.id, said.created, choice.finish_reason) == ("r1", "chatcmpl-1", 1_700_000_000, "stop")
    assert choice.message.content == ANSWER
    assert choice.message.annotations is not None
    [annotation] = choice.message.annotations
    assert annotation.url_citation.url == "https://shop.example/returns"
    assert annotation.url_citation.title == "Shop > Returns"
    assert (annotation.url_citation.start_index, annotation.url_citation.end_index) == (0, 36)
    assert choice.message.model_extra is not None
    assert choice.message.model_extra["citations"] == BODY["citations"]
    assert choice.message.model_extra["verdict"] == {
        **{"decision": "pass", "confidence": 0.8, "reasons": []},
        "history_read": None,
    }
    assert said.usage is not None
    assert said.usage.total_tokens == 12


def test_a_streamed_answer_is_what_the_sdk_takes_for_one() -> None:
    chunks = streamed(token(ANSWER[:9]), token(ANSWER[9:]), *done(), include_usage=True)
    read = [ChatCompletionChunk.model_validate(json.loads(json.dumps(chunk)), strict=True) for chunk in chunks]
    assert content_of(chunks) == ANSWER
    assert read[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in read[:-1]] == [None, None, None, "stop"]
    assert read[-1].choices == []
    assert read[-1].usage is not None
    assert read[-1].usage.prompt_tokens == 9
    last = chunks[-2]["choices"][0]["delta"]
    whole = MADE.whole(BODY)["choices"][0]["message"]
    assert last == {name: whole[name] for name in ("annotations", "citations", "verdict")}


def test_without_being_asked_for_tokens_none_are_told() -> None:
    assert all("usage" not in chunk for chunk in streamed(*done()))


@pytest.mark.parametrize(
    "said",
    [
        [token("No such thing."), AnswerEvent("replace", {"answer": ANSWER})],
        [token("No such "), AnswerEvent("replace", {"answer": ""}), token(ANSWER[:5]), token(ANSWER[5:])],
        [token("No"), AnswerEvent("replace", {"answer": ""}), token("Nor"), AnswerEvent("replace", {"answer": ANSWER})],
    ],
)
def test_what_is_taken_back_is_called_so_and_citations_still_point_at_their_claims(said: list[AnswerEvent]) -> None:
    chunks = streamed(*said, *done())
    sent = content_of(chunks)
    assert sent.endswith(f"{WITHDRAWN}{ANSWER}")
    delta = chunks[-1]["choices"][0]["delta"]
    [place] = [each["url_citation"] for each in delta["annotations"]]
    assert sent[place["start_index"] : place["end_index"]] == ANSWER[:36]
    first = delta["citations"][0]
    assert sent[first["answer_start"] : first["answer_end"]] == ANSWER[:36]
    assert (first["start"], first["end"]) == (0, 37), "what counts in the document does not move"


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (429, "rate_limit_error"), (503, "server_error")]
)
def test_an_error_has_openais_shape(status: int, kind: str) -> None:
    assert error_body(status, "No.", "why", "n") == {
        "error": {"message": "No.", "type": kind, "param": "n", "code": "why"}
    }


def test_an_error_ends_the_stream() -> None:
    chunks = streamed(AnswerEvent("error", error_body(503, "No model.")))
    assert chunks[-1] == error_body(503, "No model.")


def test_whoever_leaves_the_stream_ends_the_work_on_it() -> None:
    async def leave() -> None:
        async with aclosing(MADE.chunks(events(pipeline.begins, SHOWS))) as stream:
            assert (await anext(stream))["choices"][0]["delta"]["role"] == "assistant"
            assert content_of([await anext(stream)]) == "word"
        assert pipeline.cancelled

    pipeline = Begins()
    asyncio.run(leave())


class Begins(Waits):
    """Says a word, and waits."""

    async def begins(self) -> PipelineOutput:
        await Trace().complete(Streams(["word"]), [])
        return await self.answer(QUERY)


def test_usage_is_that_of_all_calls() -> None:
    calls = (Call("answer", "m", Usage(9, 3, 1)), Call("judge", "m", Usage(100, 20, 1)))
    staged = PipelineOutput(Answer("x"), usage=Usage(1, 1, 1), stages=(Stage("generate", 1.0, calls),))
    assert usage_of(staged) == {"prompt_tokens": 109, "completion_tokens": 23, "total_tokens": 132}
    assert usage_of(PipelineOutput(Answer("x"), usage=Usage(1, 2, 1)))["total_tokens"] == 3


def test_the_models_are_the_experiment() -> None:
    [model] = models("r1", 7)["data"]
    assert Model.model_validate(model, strict=True).id == "r1"


def shown(output: PipelineOutput) -> dict[str, Any]:
    said = body(output)
    cited = [{**each, "url": "https://shop.example/returns"} for each in said["citations"]]
    return {**said, "citations": cited, "usage": usage_of(output), "history_read": None}


SHOWS = Shows(shown, lambda error: error_body(503, f"{type(error).__name__}"))


class Served:
    """The routes as a service has them, over one pipeline: an ASGI app of a few lines."""

    def __init__(self, pipeline: Any, strict: bool = False) -> None:
        self.pipeline, self.strict = pipeline, strict

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            asked = asked_of(json.loads((await receive())["body"]), "r1")
        except RequestError as error:
            await self._json(send, error.status, error.body)
            return
        if not asked.stream:
            await self._json(send, 200, MADE.whole(shown(await self.pipeline.answer(replace(QUERY, text=asked.query)))))
            return
        stream = events(lambda: self.pipeline.answer(QUERY), SHOWS, strict=self.strict)
        await self._start(send, 200, b"text/event-stream")
        async for chunk in MADE.chunks(stream, asked.include_usage):
            await self._part(send, f"data: {json.dumps(chunk)}\n\n", True)
        await self._part(send, "data: [DONE]\n\n", False)

    async def _json(self, send: Any, status: int, said: Mapping[str, Any]) -> None:
        await self._start(send, status, b"application/json")
        await self._part(send, json.dumps(said), False)

    async def _start(self, send: Any, status: int, kind: bytes) -> None:
        await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", kind)]})

    async def _part(self, send: Any, text: str, more: bool) -> None:
        await send({"type": "http.response.body", "body": text.encode(), "more_body": more})


def sdk(app: Served) -> AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
    return AsyncOpenAI(base_url="http://service/v1", api_key="k", max_retries=0, http_client=http)


OPENAI_SHAPE_MESSAGES: Any = [{"role": "user", "content": "How long may I return a lamp?"}]


def test_the_sdk_gets_an_answer_with_its_citations() -> None:
    async def said() -> ChatCompletion:
        return await sdk(Served(Searches(SPLIT))).chat.completions.create(model="r1", messages=OPENAI_SHAPE_MESSAGES)

    message = asyncio.run(said()).choices[0].message
    assert message.content == ANSWER
    assert message.annotations is not None
    [citation] = (message.model_extra or {})["citations"]
    assert citation["quote"] == "You can return a lamp within 45 days."
    assert message.annotations[0].url_citation.end_index == citation["answer_end"]


def test_the_sdk_gets_a_stream_with_its_citations() -> None:
    async def said() -> list[ChatCompletionChunk]:
        stream = await sdk(Served(reliable(0.1, 0.0), strict=True)).chat.completions.create(
            model="r1", messages=OPENAI_SHAPE_MESSAGES, stream=True, stream_options={"include_usage": True}
        )
        return [chunk async for chunk in stream]

    chunks = asyncio.run(said())
    assert "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices) == ANSWER
    [citation] = (chunks[-2].choices[0].delta.model_extra or {})["citations"]
    assert citation["document"] == "returns.md"
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens > 0


def test_the_sdk_raises_what_goes_wrong_in_a_stream() -> None:
    async def said() -> None:
        stream = await sdk(Served(Searches([ValueError("no")]))).chat.completions.create(
            model="r1", messages=OPENAI_SHAPE_MESSAGES, stream=True
        )
        async for _ in stream:
            pass

    with pytest.raises(APIError, match="ValueError"):
        asyncio.run(said())


def test_the_sdk_raises_that_there_is_no_such_model() -> None:
    with pytest.raises(NotFoundError, match="this service has 'r1'"):
        asyncio.run(sdk(Served(None)).chat.completions.create(model="gpt-4", messages=OPENAI_SHAPE_MESSAGES))


def test_citations_of_both_ways_are_the_same() -> None:
    hits: list[Hit] = Searches(SPLIT).context
    whole = MADE.whole(shown(PipelineOutput(Answer(ANSWER, citations=(1,)), context=tuple(hits))))

    async def said() -> Chunks:
        stream = events(lambda: Searches(SPLIT).answer(QUERY), SHOWS)
        return [chunk async for chunk in MADE.chunks(stream)]

    assert asyncio.run(said())[-1]["choices"][0]["delta"]["citations"] == whole["choices"][0]["message"]["citations"]


# ``/v1``: the unmodified openai SDK asks, plain and streamed.

LAMPS: list[Any] = [{"role": "user", "content": "lamps?"}]


def asked(folder: Path, serving: Serving, ask: Callable[[AsyncOpenAI], Awaitable[Any]], key: bool = False) -> Any:
    async def run() -> Any:
        async with serving_app(folder, serving) as (app, service):
            if key:
                keys.make_key(service.database, ["query"], "test")
            web = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
            async with AsyncOpenAI(
                base_url="http://127.0.0.1/v1", api_key="any", http_client=web, max_retries=0
            ) as sdk:
                return await ask(sdk)

    return asyncio.run(run())


def test_the_sdk_gets_answer_citations_and_verdict(tmp_path: Path) -> None:
    async def ask(sdk: AsyncOpenAI) -> Any:
        return await sdk.chat.completions.create(model="e3", messages=LAMPS)

    said = asked(tmp_path, said_by(Says(passed())), ask)
    message = said.choices[0].message
    (cited,) = message.citations
    assert message.content == "Lamps go back within 45 days [Source 1]."
    assert PAGES[cited["document"]][cited["start"] : cited["end"]] == cited["quote"]
    assert message.verdict["decision"] == "pass"


def test_the_sdk_streams_and_the_last_part_has_the_citations(tmp_path: Path) -> None:
    async def ask(sdk: AsyncOpenAI) -> Any:
        usage = {"include_usage": True}
        stream: Any = await sdk.chat.completions.create(  # type: ignore[call-overload]
            model="r1", messages=LAMPS, stream=True, stream_options=usage
        )
        return [chunk async for chunk in stream]

    chunks = asked(tmp_path, serving_of(tmp_path, "r1"), ask)
    text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
    ends = [each for each in chunks if each.choices and each.choices[0].finish_reason]
    assert text == "Placeholder answer of the mock profile. [Source 1]"
    assert len(ends[0].choices[0].delta.citations) == 1
    assert chunks[-1].usage.total_tokens >= 0


def test_what_was_said_before_goes_to_the_experiment(tmp_path: Path) -> None:
    pipeline = Says(passed())
    before: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]

    async def ask(sdk: AsyncOpenAI) -> Any:
        return await sdk.chat.completions.create(model="e3", messages=[*before, *LAMPS])

    asked(tmp_path, said_by(pipeline), ask)
    assert pipeline.asked[0].text == "lamps?"
    (query,) = pipeline.asked
    assert query.inputs["history"] == before
    assert [each.content for each in query.history] == ["Hi", "Hello"]
    assert query.place["turn"] == "2"


def test_the_sdk_lists_the_experiment(tmp_path: Path) -> None:
    async def ask(sdk: AsyncOpenAI) -> Any:
        return [each.id async for each in sdk.models.list()]

    assert asked(tmp_path, said_by(Says(passed())), ask) == ["e3"]


@pytest.mark.parametrize(
    ("model", "messages", "key", "error", "said"),
    [
        ("gpt-4", LAMPS, False, NotFoundError, "has 'e3'"),
        ("e3", [], False, BadRequestError, "messages"),
        ("e3", LAMPS, True, AuthenticationError, "not known here"),
    ],
)
def test_problems_are_openais(
    tmp_path: Path, model: str, messages: list[Any], key: bool, error: type[Exception], said: str
) -> None:
    async def ask(sdk: AsyncOpenAI) -> Any:
        return await sdk.chat.completions.create(model=model, messages=messages)

    with pytest.raises(error, match=said) as raised:
        asked(tmp_path, said_by(Says(passed())), ask, key)
    assert raised.value.body["message"]  # type: ignore[attr-defined]


def test_a_pipeline_that_breaks_is_a_server_error(tmp_path: Path) -> None:
    async def ask(sdk: AsyncOpenAI) -> Any:
        return await sdk.chat.completions.create(model="e3", messages=LAMPS)

    with pytest.raises(InternalServerError):
        asked(tmp_path, said_by(Says(CriticalError("/srv/x"))), ask)
