"""The reader reads and declines in the language of the question; English prompts give what they gave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import openai
import pytest

from rag_harness.core.text.refusals import declines
from rag_harness.models.reader import Event, ReaderAnswer, app, reader_answer

MODEL = "embedded/extractive"
USER = "Context:\n[Source 1: fees.md]\nThe pick-up fee is €29.\n\nQuestion: What is the pick-up fee?"
ANSWER = "The pick-up fee is €29. [Source 1]"


def with_client(use: Callable[[openai.AsyncOpenAI], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app)) as http:
            client = openai.AsyncOpenAI(api_key="x", base_url="http://embedded/v1", http_client=http, max_retries=0)
            return await use(client)

    return asyncio.run(session())


def create(user: str = USER, **options: Any) -> Any:
    system = options.pop("system", "Answer from the context.")
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    request = {"model": MODEL, "messages": messages, **options}
    return with_client(lambda client: client.chat.completions.create(**request))


def schema(*names: str) -> dict[str, Any]:
    body = {"type": "object", "properties": {name: {} for name in names}, "required": list(names)}
    return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": body}}


def request(method: str, path: str, content: bytes = b"") -> httpx2.Response:
    async def send() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://embedded") as http:
            return await http.request(method, path, content=content)

    return asyncio.run(send())


def test_plain_answer() -> None:
    completion = create(temperature=0.7, seed=3)
    assert completion.choices[0].message.content == ANSWER
    assert completion.choices[0].finish_reason == "stop"
    assert (completion.model, completion.created) == (MODEL, 0)
    assert completion.usage.total_tokens == completion.usage.prompt_tokens + completion.usage.completion_tokens > 0


def test_id_is_stable_and_depends_on_the_request() -> None:
    assert create().id == create(temperature=1.0).id
    assert create().id != create(user="Question: Else?").id


def test_stream_says_the_same_as_no_stream() -> None:
    async def collect(client: openai.AsyncOpenAI) -> list[Any]:
        stream = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "system", "content": "Answer from the context."}, {"role": "user", "content": USER}],
            stream=True,
            stream_options={"include_usage": True},
        )
        return [chunk async for chunk in stream]

    chunks, whole = with_client(collect), create()
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == ANSWER
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].usage == whole.usage
    assert {chunk.id for chunk in chunks} == {whole.id}


def test_stream_ends_with_done_and_no_usage_unless_asked() -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": USER}], "stream": True}
    response = request("POST", "/chat/completions", json.dumps(body).encode())
    assert response.headers["content-type"].startswith("text/event-stream")
    assert response.text.endswith("data: [DONE]\n\n")
    assert "usage" not in response.text


def test_structured_answer() -> None:
    assert json.loads(create(response_format=schema("answer")).choices[0].message.content) == {"answer": ANSWER}


@pytest.mark.parametrize(
    "options",
    [
        {"response_format": schema("reasoning_steps", "answer")},
        {"response_format": {"type": "json_object"}, "system": "Return JSON with reasoning_steps and answer."},
        {"system": 'Return JSON: {"reasoning_steps": [...], "answer": "..."}'},
    ],
)
def test_structured_answer_with_steps(options: dict[str, Any]) -> None:
    found = json.loads(create(**options).choices[0].message.content)
    assert list(found) == ["reasoning_steps", "answer"]
    assert found["answer"] == ANSWER
    assert all(isinstance(step, str) for step in found["reasoning_steps"])


def test_json_object_alone_is_an_answer() -> None:
    content = create(response_format={"type": "json_object"}).choices[0].message.content
    assert json.loads(content) == {"answer": ANSWER}


def test_no_context_is_not_known() -> None:
    assert create(user="Question: What is the fee?").choices[0].message.content == "I don't know."


def test_unknown_model() -> None:
    with pytest.raises(openai.NotFoundError) as caught:
        create(model="gpt-9")
    assert caught.value.code == "model_not_found"
    assert MODEL in caught.value.message


def test_schema_it_cannot_fill() -> None:
    with pytest.raises(openai.BadRequestError, match="verdict"):
        create(response_format=schema("verdict"))


@pytest.mark.parametrize(
    "content",
    [b"{", b"\xff", b"[]", b"[" * 200_000, json.dumps({"model": MODEL, "messages": []}).encode()],
    ids=["cut", "not utf-8", "list", "deep", "no messages"],
)
def test_malformed_request(content: bytes) -> None:
    response = request("POST", "/v1/chat/completions", content)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/v1/chat/completions", 405), ("POST", "/v1/models", 405), ("POST", "/v1/embeddings", 404)],
)
def test_other_requests(method: str, path: str, status: int) -> None:
    response = request(method, path)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_too_large_a_request() -> None:
    assert request("POST", "/v1/chat/completions", b" " * 8_000_001).status_code == 413


def test_lone_surrogate_survives() -> None:
    body = b'{"model": "embedded/extractive", "messages": [{"role": "user", "content": "Question: \\ud800?"}]}'
    assert request("POST", "/v1/chat/completions", body).status_code == 200


def test_models_are_listed() -> None:
    async def names(client: openai.AsyncOpenAI) -> list[str]:
        return [model.id async for model in client.models.list()]

    assert with_client(names) == [MODEL]


def test_lifespan_starts_and_stops() -> None:
    asked = iter([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    said: list[str] = []

    async def receive() -> Event:
        return dict(next(asked))

    async def send(event: Event) -> None:
        said.append(event["type"])

    asyncio.run(app({"type": "lifespan"}, receive, send))
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_client_that_leaves_gets_nothing() -> None:
    said: list[Event] = []

    async def receive() -> Event:
        return {"type": "http.disconnect"}

    async def send(event: Event) -> None:
        said.append(event)

    asyncio.run(app({"type": "http", "method": "POST", "path": "/v1/chat/completions"}, receive, send))
    assert said == []


# The reader reads and declines in the language of the question; English prompts give what they gave.

SHIPPING = (
    "Sperrige Waren, z. B. Anhänger, liefert eine Spedition. Die Lieferungen dauern 3 bis 5 Werktage. Sie gelten seit "
    "dem 3. März 2025 für alle Länder."
)


def read(question: str, *sources: str) -> ReaderAnswer:
    context = "\n\n".join(f"[Source {n}: p{n}.md]\n{text}" for n, text in enumerate(sources, 1))
    return reader_answer([{"role": "user", "content": f"{context}\n\nQuestion: {question}"}])


def test_a_german_question_is_answered_by_the_sentence_with_other_forms_of_its_words() -> None:
    assert read("Wie lange dauert eine Lieferung?", SHIPPING).answer == (
        "Die Lieferungen dauern 3 bis 5 Werktage. [Source 1]"
    )


def test_a_sentence_is_quoted_whole_behind_an_abbreviation() -> None:
    said = read("Wer liefert sperrige Waren?", SHIPPING).answer
    assert said.startswith("Sperrige Waren, z. B. Anhänger, liefert eine Spedition. [Source 1]")


@pytest.mark.parametrize(
    ("question", "source", "said"),
    [
        ("Wo parke ich mein Auto?", SHIPPING, "Das weiß ich nicht."),
        ("Où est-ce que je peux garer ma voiture ?", "La livraison est faite dans les cinq jours.", "Je ne sais pas."),
        ("Where do I park my car?", "Returns are free and they take five days.", "I don't know."),
    ],
)
def test_the_reader_declines_in_the_language_of_the_question(question: str, source: str, said: str) -> None:
    answer = read(question, source).answer
    assert answer.startswith(said)
    assert declines(answer)


def test_without_a_context_it_says_no_more() -> None:
    assert read("Wie lange dauert eine Lieferung?").answer == "Das weiß ich nicht."


def test_a_language_without_rules_is_declined_in_english() -> None:
    assert read("返金には何日かかりますか？", "送料は無料です。").answer.startswith("I don't know.")


def test_a_question_that_tells_nothing_is_read_as_its_sources_are() -> None:
    assert read("Lieferung?", SHIPPING).answer == "Die Lieferungen dauern 3 bis 5 Werktage. [Source 1]"
