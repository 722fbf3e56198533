"""``/v1``: the unmodified openai SDK asks, plain and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, AuthenticationError, BadRequestError, InternalServerError, NotFoundError

from rag_harness.core.errors import CriticalError
from rag_harness.service import keys
from rag_harness.service.corpus.contents import Serving
from tests.unit.service.served import PAGES, said_by, serving_app, serving_of
from tests.unit.service.test_query import Says, passed

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
