"""The simulated model behind the interface of OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag_harness.models.prompts import load_prompts
from rag_harness.models.simulated_model import MODEL, SimulatedApp, SimulatedModel
from rag_harness.pipelines.parts import response_format
from tests.unit.hits import hits_of

ASKED = "How long can I return a lamp?"


@pytest.fixture
def app(tmp_path: Path) -> SimulatedApp:
    file = tmp_path / "queries.jsonl"
    row = {"query": ASKED, "ground_truth": "For 45 days.", "context_reference": ["page.md"]}
    file.write_text(json.dumps(row), encoding="utf-8")
    return SimulatedApp(SimulatedModel.reading(file))


def _asked(app: SimulatedApp, method: str, path: str, body: Any = None) -> httpx2.Response:
    async def ask() -> httpx2.Response:
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url="http://embedded/v1") as client:
            return await client.request(method, path, json=body)

    return asyncio.run(ask())


def _body(reasons: bool = False, **more: Any) -> dict[str, Any]:
    prompts = load_prompts("e4" if reasons else "e3")
    said = prompts.messages(ASKED, hits_of(["A lamp can be returned within 45 days."]))
    messages = [{"role": message.role, "content": message.content} for message in said]
    return {"model": MODEL, "messages": messages, "seed": 2, "response_format": response_format(reasons), **more}


def _said(app: SimulatedApp, body: dict[str, Any]) -> str:
    response = _asked(app, "POST", "/chat/completions", body)
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def test_the_studys_prompts_are_read(app: SimulatedApp) -> None:
    assert json.loads(_said(app, _body())) == {"answer": "For 45 days. [Source 1]"}
    reasoned = json.loads(_said(app, _body(reasons=True)))
    assert reasoned["reasoning_steps"][-1] == "Simulated step: sources used: 1."


def test_the_seed_decides(app: SimulatedApp) -> None:
    assert len({_said(app, _body(seed=seed)) for seed in range(30)}) > 1


def test_a_stream_has_one_event_with_the_answer(app: SimulatedApp) -> None:
    response = _asked(app, "POST", "/chat/completions", _body(stream=True))
    event, done = response.text.split("\n\n")[:2]
    assert done == "data: [DONE]"
    chunk = json.loads(event.removeprefix("data: "))
    assert json.loads(chunk["choices"][0]["delta"]["content"]) == {"answer": "For 45 days. [Source 1]"}
    assert chunk["usage"]["total_tokens"] > 0


def test_without_a_schema_the_answer_is_plain_text(app: SimulatedApp) -> None:
    assert _said(app, _body(response_format=None)) == "For 45 days. [Source 1]"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (_body(model="gpt"), 404),
        (_body(messages=[]), 400),
        (_body(messages=["hello"]), 400),
        ([], 400),
        (_body(response_format={"json_schema": {"schema": {"properties": {"searches": {}}}}}), 400),
    ],
)
def test_requests_that_cannot_be_answered(app: SimulatedApp, body: Any, status: int) -> None:
    response = _asked(app, "POST", "/chat/completions", body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_other_paths_are_unknown(app: SimulatedApp) -> None:
    assert _asked(app, "GET", "/models").status_code == 404
