"""``GET /health``: what it tells to whom, and that it answers whatever is wrong."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx

from rag_harness.core.package import VERSION
from rag_harness.core.settings.loading import load_settings
from rag_harness.service.database import StateFolder
from rag_harness.service.options import Options
from rag_harness.service.server import create_app, opened
from tests.unit.service.observing.test_metrics import read
from tests.unit.service.tenants import server

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
        async with server(tmp_path, ["acme", "globex"]) as served:
            page = await add(served.clients["acme"], "lamps.md", PAGE)
            acme = await health(served.clients["acme"])
            assert (acme["docs"], acme["chunks"]) == (1, page["chunks_created"])
            globex = await health(served.clients["globex"])
            assert (globex["docs"], globex["chunks"], globex["index_size"]) == (0, 0, 0)
            assert (await health(served.clients["everything"]))["docs"] == 1
            for key in ("", "Bearer of nothing", "Bearer rag_unknown"):
                assert await health(served.clients["acme"], authorization=key) == ALIVE

    asyncio.run(scenario())
