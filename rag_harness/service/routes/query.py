"""``POST /query``: a question, answered whole or as it comes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import StreamingResponse

from rag_harness.service.access.asking import asks
from rag_harness.service.access.principal import Principal
from rag_harness.service.answering import Question, answer, shown
from rag_harness.service.disconnecting import while_waited_for
from rag_harness.service.problems import ProblemError
from rag_harness.service.routes.asked import service_of, trace_of
from rag_harness.service.schemas import Answered, Asked

router = APIRouter(tags=["questions"])
_STREAMS = "text/event-stream"


@router.post(
    "/query",
    response_model=Answered,
    summary="Ask a question",
    responses={200: {"content": {_STREAMS: {"schema": {"type": "string"}}}}},
)
async def query(
    request: Request, asked: Asked, principal: Annotated[Principal, Depends(asks("query"))]
) -> Answered | StreamingResponse:
    """Answer from the documents of the key's collection.

    With `Accept: text/event-stream` the answer comes as events: `retrieval`, `token`, `citation`, `verdict`, and
    `replace` where what was streamed is withdrawn.
    """
    service, trace_id = service_of(request), trace_of(request)
    if len(asked.query) > service.options.query:
        limit = service.options.query
        raise ProblemError(
            413, "query_too_long", f"The question has {len(asked.query)} characters, and may have {limit}."
        )
    serving = service.collection(principal, asked.collection).serving
    question = Question(asked.query, trace_id, asked.inputs, asked.mode)
    output = await while_waited_for(request, answer(serving, question, service.options.seconds))
    return shown(serving, output, trace_id, asked.debug)
