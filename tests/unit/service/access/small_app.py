"""A small application behind everything that stands before a service's routes, asked in process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import httpx
from fastapi import APIRouter, Depends, FastAPI, Form, Request, UploadFile
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from rag_harness.service.app_state import Options
from rag_harness.service.authentication import Access, GuardedRoute, asks
from rag_harness.service.database import Database, StateError
from rag_harness.service.keys import Principal, grant
from rag_harness.service.middleware import Pace, a_place, install

URL = "http://127.0.0.1:8000"
Queries = Annotated[Principal, Depends(asks("query"))]
Ingests = Annotated[Principal, Depends(asks("ingest"))]


class Asked(BaseModel):
    query: str
    inputs: dict[str, Any] = {}


def create_app(db: Database, options: Options | None = None, pace: Pace | None = None) -> FastAPI:
    router, app = APIRouter(route_class=GuardedRoute), FastAPI(docs_url=None, redoc_url=None)

    @router.post("/query", dependencies=[Depends(a_place)])
    async def query(request: Request, asked: Asked, principal: Queries) -> dict[str, Any]:
        await grant(db, principal)
        return {"answer": asked.query, "inputs": asked.inputs, "collection": principal.collection}

    @router.post("/slow", dependencies=[Depends(a_place)])
    async def slow(asked: Asked, principal: Queries) -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"first"
            await app.state.goes_on.wait()
            yield b"last"

        return StreamingResponse(parts())

    @router.post("/ingest")
    async def ingest(file: UploadFile, principal: Ingests, metadata: Annotated[str, Form()] = "{}") -> dict[str, Any]:
        return {"bytes": len(await file.read()), "metadata": metadata}

    @router.get("/documents/{doc_id}")
    async def documents(doc_id: int, principal: Ingests) -> dict[str, Any]:
        return {"doc_id": doc_id}

    @router.get("/fails")
    async def fails() -> None:
        raise RuntimeError("a secret at /home/somebody")

    @router.get("/breaks")
    async def breaks() -> StreamingResponse:
        async def parts() -> AsyncIterator[bytes]:
            yield b"first"
            raise RuntimeError("midway")

        return StreamingResponse(parts())

    @router.get("/stateless")
    async def stateless() -> None:
        raise StateError.of(Path("/somewhere/service.sqlite3"), ValueError("database disk image is malformed"))

    @router.get("/health")
    async def health() -> dict[str, str]:
        return {"status": "ok"}

    app.include_router(router)
    install(app, pace)
    app.state.goes_on = asyncio.Event()
    app.state.access = Access.of(db, options or Options("e1"))
    return app


@dataclass
class Asking:
    """Asks an application; ``key`` goes with every request."""

    app: FastAPI
    key: str = ""
    headers: dict[str, str] = field(default_factory=dict)

    def client(self) -> httpx.AsyncClient:
        named = {**self.headers, **({"Authorization": f"Bearer {self.key}"} if self.key else {})}
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=URL, headers=named)

    def __call__(self, method: str, path: str, **given: Any) -> httpx.Response:
        async def asked() -> httpx.Response:
            async with self.client() as client:
                return await client.request(method, path, **given)

        return asyncio.run(asked())

    def ask(self, question: str = "How long?", **given: Any) -> httpx.Response:
        return self("POST", "/query", json={"query": question}, **given)


@contextmanager
def opened(folder: Path) -> Iterator[Database]:
    db = Database(folder / "service.sqlite3")
    try:
        yield db
    finally:
        db.close()
