"""``GET /health``, ``GET /ready``: whether the process lives, and whether it can answer."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from rag_harness.service.corpus.serving import DEFAULT
from rag_harness.service.problems import ProblemError
from rag_harness.service.routes.request_parts import service_of
from rag_harness.service.schemas import Health, Ready

router: APIRouter = APIRouter(tags=["server"])


@router.get("/health", response_model=Health, summary="Does it live?")
async def health() -> Health:
    """Say that the process answers. No key is needed, and nothing is told."""
    return Health()


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
