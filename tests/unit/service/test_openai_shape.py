"""Answers in OpenAI's shape, read by the unmodified SDK: text, citations, tokens, errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import httpx2
import pytest
from openai import APIError, AsyncOpenAI, NotFoundError
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from rag_harness.core.types import Answer, Call, Hit, PipelineOutput, Stage, Usage
from rag_harness.models.reader import RequestError
from rag_harness.pipelines.trace import Trace
from rag_harness.service.answer_stream import AnswerEvent, Shows, events
from rag_harness.service.openai_api import WITHDRAWN, Completion, asked_of, error_body, models, usage_of
from tests.unit.service.test_answer_stream import QUERY, SPLIT, Searches, Streams, Waits, body, reliable
from tests.unit.studies.reliability.test_reliability import ANSWER

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


MESSAGES: Any = [{"role": "user", "content": "How long may I return a lamp?"}]


def test_the_sdk_gets_an_answer_with_its_citations() -> None:
    async def said() -> ChatCompletion:
        return await sdk(Served(Searches(SPLIT))).chat.completions.create(model="r1", messages=MESSAGES)

    message = asyncio.run(said()).choices[0].message
    assert message.content == ANSWER
    assert message.annotations is not None
    [citation] = (message.model_extra or {})["citations"]
    assert citation["quote"] == "You can return a lamp within 45 days."
    assert message.annotations[0].url_citation.end_index == citation["answer_end"]


def test_the_sdk_gets_a_stream_with_its_citations() -> None:
    async def said() -> list[ChatCompletionChunk]:
        stream = await sdk(Served(reliable(0.1, 0.0), strict=True)).chat.completions.create(
            model="r1", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
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
            model="r1", messages=MESSAGES, stream=True
        )
        async for _ in stream:
            pass

    with pytest.raises(APIError, match="ValueError"):
        asyncio.run(said())


def test_the_sdk_raises_that_there_is_no_such_model() -> None:
    with pytest.raises(NotFoundError, match="this service has 'r1'"):
        asyncio.run(sdk(Served(None)).chat.completions.create(model="gpt-4", messages=MESSAGES))


def test_citations_of_both_ways_are_the_same() -> None:
    hits: list[Hit] = Searches(SPLIT).context
    whole = MADE.whole(shown(PipelineOutput(Answer(ANSWER, citations=(1,)), context=tuple(hits))))

    async def said() -> Chunks:
        stream = events(lambda: Searches(SPLIT).answer(QUERY), SHOWS)
        return [chunk async for chunk in MADE.chunks(stream)]

    assert asyncio.run(said())[-1]["choices"][0]["delta"]["citations"] == whole["choices"][0]["message"]["citations"]
