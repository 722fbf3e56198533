"""``/conversations``: the server keeps what is said in one, for clients that do not."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from rag_harness.service.access.principal import Principal
from rag_harness.service.access.who_asks import GuardedRoute, asks
from rag_harness.service.conversations import Owner
from rag_harness.service.routes.request_parts import InCollection, service_of
from rag_harness.service.schemas import Conversation

router: APIRouter = APIRouter(prefix="/conversations", tags=["questions"], route_class=GuardedRoute)
Asks = Annotated[Principal, Depends(asks("query"))]


@router.post("", response_model=Conversation, status_code=201, summary="Begin a conversation")
async def begin(request: Request, principal: Asks, collection: InCollection = None) -> Conversation:
    """Keep what is said in a conversation, in memory: of this key alone, until a day after its last turn.

    Send its id with each question, `POST /query` with `conversation`.
    """
    owner = _owner(request, principal, collection)
    return Conversation(conversation=service_of(request).conversations.begin(owner))


@router.delete("/{conversation}", status_code=204, summary="Forget a conversation")
async def end(request: Request, conversation: str, principal: Asks, collection: InCollection = None) -> Response:
    """Forget what was said. Traces of its answers stay as long as traces do."""
    service_of(request).conversations.end(_owner(request, principal, collection), conversation)
    return Response(status_code=204)


def _owner(request: Request, principal: Principal, collection: str | None) -> Owner:
    return service_of(request).collection(principal, collection).name, principal.key_id
