"""``/traces`` and ``/metrics``: what was done for questions, and the ratings of the answers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from rag_harness.service.access.principal import Principal
from rag_harness.service.access.who_asks import GuardedRoute, asks
from rag_harness.service.observing.metrics import CONTENT_TYPE
from rag_harness.service.problems import ProblemError
from rag_harness.service.routes.request_parts import service_of
from rag_harness.service.schemas import AnswerAgain, Rating

router: APIRouter = APIRouter(tags=["traces"], route_class=GuardedRoute)
Asks = Annotated[Principal, Depends(asks("query"))]


@router.get("/traces/{trace_id}", response_model=dict[str, Any], summary="How did an answer come about?")
async def trace(request: Request, trace_id: str, principal: Asks) -> dict[str, Any]:
    """Return the spans of an answer, with its decisions; its words only where the server keeps them."""
    found = service_of(request).traces.get(trace_id, principal.collection)
    if found is None:
        raise _no_such_trace()
    return found


@router.get("/traces/{trace_id}/answer", response_model=AnswerAgain, summary="What was answered?")
async def answer(request: Request, trace_id: str, principal: Asks) -> dict[str, Any]:
    """Return an answer again, with its question and its sources.

    It is one of the last 1,000 since the server began, or any if the server keeps words.
    """
    found = service_of(request).traces.answer(trace_id, principal.collection)
    if found is None:
        raise ProblemError(404, "no_such_answer", "There is no such answer: it is not kept any more, or never was.")
    return found


@router.post("/traces/{trace_id}/rating", status_code=204, summary="Say what you think of an answer")
async def rate(request: Request, trace_id: str, rating: Rating, principal: Asks) -> Response:
    """Keep a thumb and a comment: `rag-harness queries from-traces` makes test cases of them."""
    service = service_of(request)
    if not await service.traces.rate(trace_id, principal.collection, rating.thumb, rating.comment):
        raise _no_such_trace()
    service.metrics.rated(rating.thumb)
    return Response(status_code=204)


@router.get("/metrics", response_class=Response, summary="What Prometheus reads")
async def metrics(
    request: Request, principal: Annotated[Principal, Depends(asks("admin"))], by_collection: bool = False
) -> Response:
    """Return counts and times of the whole server, and of each collection where that is asked for."""
    if principal.collection is not None:
        raise ProblemError(
            403, "bound_key", "These are counts of every collection, and this key is bound to one. Use one that is not."
        )
    return Response(service_of(request).metrics.text(by_collection), media_type=CONTENT_TYPE)


def _no_such_trace() -> ProblemError:
    return ProblemError(404, "no_such_trace", "There is no such trace: it is too old, or never was.")
