"""A server as `rag-harness serve` wires it: a question is found in traces, metrics, logs, a collector and a sample."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from rag_harness.__main__ import main
from rag_harness.core.settings.loading import load_settings
from rag_harness.service.app_state import Options
from rag_harness.service.database import StateFolder
from rag_harness.service.monitoring import logging_to
from rag_harness.service.server import create_app, opened
from tests.unit.service.corpus.corpora import write_pages
from tests.unit.service.observing.seen import TRACEPARENT
from tests.unit.service.observing.test_metrics import read
from tests.unit.service.observing.test_otlp import Collector, collecting

QUESTION = "How long is a zip mended?"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as server:
        yield server


@asynccontextmanager
async def serving(folder: Path, **options: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """Give a client of a server over three pages, on the mock profile."""
    kb = write_pages(folder / "kb")
    settings = load_settings({"profile": "mock", "top_k": 3, "candidates": 5}, rootdir=folder)
    with StateFolder(folder / "state") as state:
        app = create_app(lambda: opened(Options("e2", folder / "state", kb, **options), settings, state))
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                yield client


def test_a_question_can_be_followed_from_its_answer_to_a_case(tmp_path: Path, collector: Collector) -> None:
    stream = io.StringIO()

    async def scenario() -> str:
        async with serving(tmp_path, trace_content=True, otlp=collector.url) as client:
            answered = await client.post("/query", json={"query": QUESTION}, headers={"traceparent": TRACEPARENT})
            trace_id: str = answered.json()["trace_id"]
            trace = (await client.get(f"/traces/{trace_id}")).json()
            assert [span["name"] for span in trace["spans"]][:2] == ["invoke_workflow e2", "retrieval default"]
            assert (trace["decision"], trace["content"]["question"]) == ("unchecked", QUESTION)
            assert trace["continues"] == TRACEPARENT.split("-")[1]
            rated = await client.post(f"/traces/{trace_id}/rating", json={"thumb": -1, "comment": "no"})
            assert rated.status_code == 204
            await client.post("/ingest", files={"file": ("stove.md", b"# Stove\n\nIt burns gas.\n")})
            await client.post("/ingest", files={"file": ("bad.md", b"\xff\xfe")})
            said = read((await client.get("/metrics")).content)
            assert said["rag_harness_decisions_total{outcome=unchecked}"] == 1
            assert said["rag_harness_requests_total{method=POST,route=/query,status=200}"] == 1
            assert said["rag_harness_ratings_total{thumb=down}"] == 1
            assert (said["rag_harness_ingest_seconds_count"], said["rag_harness_ingest_failures_total"]) == (2, 1)
            assert (said["rag_harness_documents"], said["rag_harness_questions_waiting"]) == (4, 0)
            named = (await client.get("/metrics?by_collection=true")).content
            assert read(named)["rag_harness_collection_documents{collection=default}"] == 4
            return trace_id

    with logging_to(stream):
        trace_id = asyncio.run(scenario())
    lines = [json.loads(line) for line in stream.getvalue().splitlines()]
    asked = [line for line in lines if line.get("route") == "/query"]
    assert [(line["event"], line["status"], line["trace_id"]) for line in asked] == [("request", 200, trace_id)]
    assert QUESTION not in stream.getvalue()
    exported = collector.spans()
    assert {span.trace_id.hex() for span in exported} == {TRACEPARENT.split("-")[1]}
    assert exported[0].parent_span_id.hex() == TRACEPARENT.split("-")[2]
    assert QUESTION.encode() not in b"".join(body for _, body in collector.bodies)
    where = ["--state", str(tmp_path / "state"), "-o", str(tmp_path / "asked.jsonl")]
    assert main(["queries", "from-traces", "--only", "thumbs-down", *where]) == 0
    (row,) = [json.loads(line) for line in (tmp_path / "asked.jsonl").read_text().splitlines()]
    assert (row["query"], row["metadata"]["seen"]["comments"]) == (QUESTION, ["no"])


def test_without_leave_no_word_of_a_question_reaches_the_disk(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as client:
            await client.post("/query", json={"query": "Does a zebrafish swim?", "inputs": {"from": "quokka"}})

    asyncio.run(scenario())
    kept = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any(file.name == "service.sqlite3" for file in kept)
    assert [file.name for file in kept if b"zebrafish" in file.read_bytes() or b"quokka" in file.read_bytes()] == []
