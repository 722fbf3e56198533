"""``t5`` behind HTTP: summaries are searched first, each is made once, and answers are told as those of ``t1`` are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest

from rag_harness.core.errors import ModelCallError
from rag_harness.core.package import VERSION
from rag_harness.core.settings.loading import load_settings
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.models.dry_run import MockChat
from rag_harness.service import server
from rag_harness.service.app_state import Options
from rag_harness.service.database import StateFolder
from rag_harness.service.server import create_app, opened
from tests.unit.service.corpus.corpora import write_pages
from tests.unit.service.observing.test_metrics import read
from tests.unit.service.tenants import server as tenants_server
from tests.unit.studies.textbook.book import PAGES

# ``t5`` behind HTTP: summaries are searched first, each is made once, and answers are told as those of ``t1`` are.

ACTIONS = """---
module: 1
chapter: 3
url: /module-1/chapter-3
---

# Actions

An action has a goal, feedback and a result. A client may cancel the goal of an action.
"""
QUESTION = "What has an action beside a goal?"
SAID = "Summary of the section"


class Writer:
    """Stands for the mock chat model: counts the summaries that it is asked for, and may be out."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked, self.is_out, inner = list[str](), False, MockChat.complete

        async def complete(
            chat: MockChat, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
        ) -> Completion:
            if not messages[0].content.startswith("You write summaries"):
                return await inner(chat, messages, response_format)
            if self.is_out:
                raise ModelCallError("the writer is out")
            self.asked.append(messages[-1].content.rpartition("section: ")[2])
            return Completion(f"{SAID}.", "mock/placeholder", Usage(calls=1), 0.0, 0.0)

        monkeypatch.setattr(MockChat, "complete", complete)


@asynccontextmanager
async def served(root: Path, **changes: Any) -> AsyncIterator[httpx2.AsyncClient]:
    settings = load_settings({"profile": "mock", **changes}, rootdir=root)
    with StateFolder(root / "state") as state:
        app = create_app(lambda: server.opened(Options("t5", root / "state", root / "kb"), settings, state))
        async with app.router.lifespan_context(app):
            transport = httpx2.ASGITransport(app=app)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                yield client


async def asked(client: httpx2.AsyncClient, question: str = QUESTION) -> Any:
    answer = await client.post("/query", json={"query": question, "debug": True})
    assert answer.status_code == 200, answer.text
    return answer.json()


def documents_of(answer: Any) -> set[str]:
    return {hit["document"] for hit in answer["debug"]["retrieved"]}


@pytest.mark.parametrize("writer_model", ["", "mock/placeholder"])
def test_documents_come_and_go_and_each_summary_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer_model: str
) -> None:
    writer = Writer(monkeypatch)
    write_pages(tmp_path / "kb", PAGES)
    actions = "module-1/chapter-3-actions.md"

    async def scenario() -> None:
        async with served(tmp_path, writer_model=writer_model) as client:
            made = len(writer.asked)
            health = (await client.get("/health")).json()
            assert made == (health["chunks"] if writer_model else 0)
            assert (health["docs"], health["index_size"]) == (len(PAGES), 2 * health["chunks"])
            before = await asked(client)
            assert documents_of(before) == set(PAGES)
            sent = await client.post("/ingest", files={"file": (actions, ACTIONS.encode())})
            assert sent.status_code in (200, 201), sent.text
            assert len(writer.asked) == made + bool(writer_model)
            answer = await asked(client)
            assert answer["experiment"] == "t5"
            assert answer["debug"]["retrieved"][0]["document"] == actions
            [cited] = answer["citations"]
            assert cited["document"] == actions
            assert cited["url"] == "/module-1/chapter-3#actions"
            assert answer["decision"] in ("pass", "warn")
            summaries = next(each for each in answer["debug"]["decisions"] if each["name"] == "summaries")
            assert summaries["outcome"] == (f"written by {writer_model}" if writer_model else "extractive")
            # The model reads sections, and never a summary.
            assert SAID not in json.dumps(answer["debug"]["context"])
            asked_for = len(writer.asked)
        async with served(tmp_path, writer_model=writer_model) as client:
            again = await asked(client)
            assert (again["citations"], again["confidence"]) == (answer["citations"], answer["confidence"])
            assert len(writer.asked) == asked_for
            listed = (await client.get("/documents")).json()
            [found] = [each for each in listed["documents"] if each["name"] == actions]
            assert (await client.delete(f"/documents/{found['doc_id']}")).status_code == 204
            assert documents_of(await asked(client)) == set(PAGES)
        async with served(tmp_path, writer_model=writer_model) as client:
            assert documents_of(await asked(client)) == set(PAGES)
            assert len(writer.asked) == asked_for

    asyncio.run(scenario())


def test_a_writer_that_is_out_refuses_the_document_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = Writer(monkeypatch)
    write_pages(tmp_path / "kb", PAGES)

    async def scenario() -> None:
        async with served(tmp_path, writer_model="mock/placeholder") as client:
            before = await asked(client)
            writer.is_out = True
            refused = await client.post("/ingest", files={"file": ("actions.md", ACTIONS.encode())})
            assert (refused.status_code, refused.json()["code"]) == (503, "texts_not_made")
            after = await asked(client)
            assert (after["citations"], documents_of(after)) == (before["citations"], set(PAGES))
            writer.is_out = False
            assert (await client.post("/ingest", files={"file": ("actions.md", ACTIONS.encode())})).is_success
            assert "actions.md" in documents_of(await asked(client))

    asyncio.run(scenario())


# ``GET /health``: what it tells to whom, and that it answers whatever is wrong.

ALIVE = {"status": "ok", "version": None, "model": None, "docs": None, "chunks": None, "index_size": None}
PAGE = b"# Lamps\n\nLamps can be returned.\n\n## Batteries\n\nBatteries cannot be returned.\n"
LONG = b"# Kettles\n\n" + b"A kettle of steel boils water. " * 400


async def add(client: httpx.AsyncClient, name: str, page: bytes) -> dict[str, Any]:
    said = await client.post("/ingest", files={"file": (name, page)})
    assert said.status_code == 200, said.text
    found: dict[str, Any] = said.json()
    return found


async def health(client: httpx.AsyncClient, **headers: str) -> Any:
    said = await client.get("/health", headers=headers)
    assert said.status_code == 200
    return said.json()


def test_without_keys_it_tells_what_the_server_has(tmp_path: Path) -> None:
    settings = load_settings({"profile": "mock", "embed_max_tokens": 32}, rootdir=tmp_path)

    async def scenario() -> None:
        with StateFolder(tmp_path / "state") as state:
            app = create_app(lambda: opened(Options("e2", tmp_path / "state"), settings, state))
            async with app.router.lifespan_context(app):
                transport = httpx.ASGITransport(app)
                async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8000") as client:
                    said = {"status": "ok", "version": VERSION, "model": "mock/placeholder"}
                    assert await health(client) == {**said, "docs": 0, "chunks": 0, "index_size": 0}
                    one = await add(client, "lamps.md", PAGE)
                    other = await add(client, "kettles.md", LONG)
                    chunks = one["chunks_created"] + other["chunks_created"]
                    found = await health(client)
                    assert found == {**said, "docs": 2, "chunks": chunks, "index_size": found["index_size"]}
                    assert found["index_size"] >= chunks > 2
                    metrics = read((await client.get("/metrics")).content)
                    told = [metrics[f"rag_harness_{name}"] for name in ("documents", "chunks", "index_size")]
                    assert told == [found["docs"], found["chunks"], found["index_size"]]
                    await client.delete(f"/documents/{one['doc_id']}")
                    left = await health(client)
                    assert (left["docs"], left["chunks"]) == (1, other["chunks_created"])
                    assert left["index_size"] < found["index_size"]
                    # A page of another site may make a browser ask.
                    assert await health(client, host="evil.example") == ALIVE

    asyncio.run(scenario())


def test_with_keys_each_is_told_of_its_own(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with tenants_server(tmp_path, ["acme", "globex"]) as served:
            page = await add(served.clients["acme"], "lamps.md", PAGE)
            acme = await health(served.clients["acme"])
            assert (acme["docs"], acme["chunks"]) == (1, page["chunks_created"])
            globex = await health(served.clients["globex"])
            assert (globex["docs"], globex["chunks"], globex["index_size"]) == (0, 0, 0)
            assert (await health(served.clients["everything"]))["docs"] == 1
            for key in ("", "Bearer of nothing", "Bearer rag_unknown"):
                assert await health(served.clients["acme"], authorization=key) == ALIVE

    asyncio.run(scenario())
