"""The application: rooms wired to routes, nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from fastapi import FastAPI

from rag_harness.service.routes import documents, health, query
from rag_harness.service.serviced import Service

Opening = Callable[[], AbstractAsyncContextManager[Service]]
ABOUT = "Answers from documents, with exact citations, and says how sure it is."


def create_app(opening: Opening) -> FastAPI:
    """Return the application of what ``opening`` opens when the server starts, and closes when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opening() as service:
            app.state.service = service
            yield

    app = FastAPI(title="rag_harness", description=ABOUT, lifespan=lifespan, redoc_url=None, docs_url=None)
    for room in (query, documents, health):
        app.include_router(room.router)
    return app
