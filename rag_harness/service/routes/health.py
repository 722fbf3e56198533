"""``GET /health``, ``GET /ready``: whether the process lives, and whether it can answer."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response

from rag_harness.registry.installed import VERSION
from rag_harness.service.access.who_asks import access_of
from rag_harness.service.corpus.serving import DEFAULT
from rag_harness.service.corpus.sizes import collection_sizes, total_size
from rag_harness.service.problems import ProblemError
from rag_harness.service.routes.request_parts import service_of
from rag_harness.service.schemas import Health, Ready
from rag_harness.service.state.problems import StateError

router: APIRouter = APIRouter(tags=["server"])


@router.get("/health", response_model=Health, summary="Does it live, and what does it have?")
async def health(request: Request) -> Health:
    """Say that the process answers, and what it has. Without a good key, a server with keys tells nothing more."""
    service = service_of(request)
    try:
        principal = access_of(request).principal(request)
        sizes = await asyncio.to_thread(collection_sizes, service.database)
    except (ProblemError, StateError):  # whether it lives does not depend on that
        return Health()
    own = [size for name, size in sizes.items() if principal.collection in (None, name)]
    return Health(version=VERSION, model=service.model or None, **total_size(own)._asdict())


@router.get("/ready", response_model=Ready, responses={503: {"model": Ready}}, summary="Can it answer?")
async def ready(request: Request, response: Response) -> Ready:
    """Say whether the documents are loaded."""
    service = service_of(request)
    try:
        service.collections.get(DEFAULT)
    except (KeyError, ProblemError):
        response.status_code = 503
        progress = service.collections.progress
        return Ready(status="starting", experiment=service.options.experiment, progress=progress)
    return Ready(status="ready", experiment=service.options.experiment)
