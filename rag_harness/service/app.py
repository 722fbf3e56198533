"""The application: connects the rooms to the routes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from fastapi import FastAPI

from rag_harness.service.access.errors import PROBLEM
from rag_harness.service.access.installing import install
from rag_harness.service.access.who_asks import Access
from rag_harness.service.observing.counting import Counting
from rag_harness.service.routes import chat, conversations, documents, health, page, query, traces
from rag_harness.service.schemas import Problem
from rag_harness.service.serviced import Service

OpenService = Callable[[], AbstractAsyncContextManager[Service]]
API_DESCRIPTION = "Answers from documents, with exact citations, and says how sure it is."
_PROBLEM = {
    "description": "What is wrong, and what to do.",
    "content": {PROBLEM: {"schema": Problem.model_json_schema()}},
}
_PROBLEMS: dict[int | str, dict[str, Any]] = {"4XX": _PROBLEM, "5XX": _PROBLEM}


def create_app(opening: OpenService) -> FastAPI:
    """Return the application. It enters ``opening`` when the server starts, and leaves it when the server ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with opening() as service:
            app.state.service, app.state.access = service, Access.of(service.database, service.options)
            service.metrics.watch_waiting(lambda: app.state.access.places.waiting)
            yield

    # A path with an extra slash is unknown. A redirect would repeat any Host that a client sends.
    shown: dict[str, Any] = {"redoc_url": None, "docs_url": None, "redirect_slashes": False}
    app = FastAPI(title="rag_harness", description=API_DESCRIPTION, lifespan=lifespan, **shown)
    asking = (query.router, conversations.router, chat.router)
    for router in (*asking, documents.router, traces.router, health.router, page.router):
        app.include_router(router, responses=_PROBLEMS)
    install(app)
    app.add_middleware(Counting)
    return app
