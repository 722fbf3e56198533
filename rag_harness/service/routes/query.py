"""``POST /query``: a question, answered in one piece or as a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import StreamingResponse

from rag_harness.service.access.capacity import a_place
from rag_harness.service.access.principal import Principal
from rag_harness.service.access.who_asks import GuardedRoute, asks
from rag_harness.service.answering import ServiceQuestion
from rag_harness.service.conversations import inputs_of
from rag_harness.service.disconnecting import while_waited_for
from rag_harness.service.problems import ProblemError
from rag_harness.service.questions import QuestionUnderWay
from rag_harness.service.read_inputs import ReadInputs
from rag_harness.service.routes.request_parts import asking
from rag_harness.service.routes.streams import SENT, streamed, wants_events
from rag_harness.service.schemas import Answered, Asked
from rag_harness.types import PipelineOutput


class _Shape:
    """An answer in the form of this route."""

    def body(self, asking: QuestionUnderWay, output: PipelineOutput) -> Mapping[str, Any]:  # noqa: ARG002
        return asking.shown().model_dump(mode="json")

    def failure(self, problem: ProblemError) -> Mapping[str, Any]:
        return problem.body()


router: APIRouter = APIRouter(tags=["questions"], route_class=GuardedRoute)


@router.post(
    "/query",
    response_model=Answered,
    summary="Ask a question",
    dependencies=[Depends(a_place)],
    responses={200: {"content": SENT}},
)
async def query(
    request: Request, response: Response, asked: Asked, principal: Annotated[Principal, Depends(asks("query"))]
) -> Answered | StreamingResponse:
    """Answer from the documents of the key's collection.

    With `Accept: text/event-stream` the answer comes as events: `retrieval`, `token`, `citation`, `verdict`, and
    `replace` where what was streamed is withdrawn.

    What was said before goes to the experiment: what the server keeps of a `conversation`, or the body's `history`.
    """
    said = [each.model_dump() for each in asked.history]
    before = inputs_of(request.state.trace_id, said) if said else {}
    inputs = ReadInputs({**asked.inputs, **before})
    question = ServiceQuestion(asked.query, request.state.trace_id, inputs, asked.mode)
    found = await asking(request, principal, question, asked.collection, asked.debug, asked.conversation or "")
    if wants_events(request):
        return streamed(found.events(_Shape()))
    await while_waited_for(request, found.output())
    # https://www.w3.org/TR/server-timing/
    response.headers["Server-Timing"] = f"pipeline;dur={found.pipeline_ms:.1f}"
    return found.shown()
