"""``POST /v1/chat/completions``, ``GET /v1/models``: any chat front end can ask here as it asks OpenAI."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from rag_harness.models.reader.wire import RequestError
from rag_harness.service.access.capacity import a_place
from rag_harness.service.access.errors import EXPECTED, PROBLEM, problem_of
from rag_harness.service.access.principal import Principal
from rag_harness.service.access.who_asks import GuardedRoute, asks
from rag_harness.service.answering import ServiceQuestion
from rag_harness.service.conversations import inputs_of
from rag_harness.service.disconnecting import while_waited_for
from rag_harness.service.openai_asked import asked_of
from rag_harness.service.openai_shape import Completion, error_body, models, usage_of
from rag_harness.service.problems import ProblemError
from rag_harness.service.questions import QuestionUnderWay
from rag_harness.service.read_inputs import ReadInputs
from rag_harness.service.routes.request_parts import asking, service_of
from rag_harness.service.routes.streams import EVENTS, SENT, json_line
from rag_harness.service.schemas import Failure, Problem
from rag_harness.types import PipelineOutput
from rag_harness.work.local_work import in_a_thread

Handler = Callable[[Request], Coroutine[Any, Any, Response]]
_EXAMPLE = {"model": "r1", "messages": [{"role": "user", "content": "How long can I return a lamp?"}]}


class _Shape:
    """An answer in the form of OpenAI's interface."""

    def body(self, asking: QuestionUnderWay, output: PipelineOutput) -> Mapping[str, Any]:
        return {**asking.shown().model_dump(mode="json"), "usage": usage_of(output)}

    def failure(self, problem: ProblemError) -> Mapping[str, Any]:
        return error_body(problem.status, problem.detail, problem.code)


class ChatRoute(GuardedRoute):
    """A route that reports problems in OpenAI's form."""

    def get_route_handler(self) -> Handler:
        """Return the handler of requests."""
        handler = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestError as error:
                return JSONResponse(error.body, error.status)
            except EXPECTED as error:
                problem = problem_of(error)
                return JSONResponse(_Shape().failure(problem), problem.status, problem.headers)

        return told


_FAILURES: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Failure},
    # An unforeseen error is reported below any route, in the other form.
    "5XX": {"model": Failure, "content": {PROBLEM: {"schema": Problem.model_json_schema()}}},
}
router: APIRouter = APIRouter(prefix="/v1", tags=["as OpenAI"], route_class=ChatRoute, responses=_FAILURES)
Asks = Annotated[Principal, Depends(asks("query"))]


@router.post(
    "/chat/completions",
    response_model=None,
    summary="Ask as one asks OpenAI",
    dependencies=[Depends(a_place)],
    responses={200: {"content": SENT}},
)
async def completions(
    request: Request, principal: Asks, body: Annotated[Any, Body(openapi_examples={"plain": {"value": _EXAMPLE}})]
) -> Response:
    """Answer the last message of the user; what was said before goes to the experiment as the input `history`.

    Beside its text a message has `citations` and `verdict`, and `annotations` where documents have an address. The
    verdict has `history_read`, whether the experiment looked at what was said before.
    """
    options = service_of(request).options
    asked = asked_of(body, options.experiment)
    before = inputs_of(request.state.trace_id, asked.history) if asked.history else {}
    question = ServiceQuestion(asked.query, request.state.trace_id, ReadInputs(before))
    found = await asking(request, principal, question, None)
    completion = Completion(options.experiment, f"chatcmpl-{request.state.trace_id}", int(time.time()))
    if asked.stream:
        return StreamingResponse(_lines(found, completion, asked.include_usage), media_type=EVENTS)
    output = await while_waited_for(request, found.output())
    return JSONResponse(completion.whole(await in_a_thread(partial(_Shape().body, found, output))))


async def _lines(found: QuestionUnderWay, completion: Completion, include_usage: bool) -> AsyncGenerator[str, None]:
    # These streams cannot take words back, so an answer that may be withheld waits for its verdict.
    events = found.events(_Shape(), holds=found.may_withhold)
    async with aclosing(completion.chunks(events, include_usage)) as chunks:
        async for chunk in chunks:
            yield f"data: {json_line(chunk)}\n\n"
    yield "data: [DONE]\n\n"


@router.get("/models", response_model=dict[str, Any], summary="Which models are there?")
async def listed(request: Request, principal: Asks) -> dict[str, Any]:  # noqa: ARG001 - a key is asked for
    """Name the experiment that answers: front ends ask before they ask anything else."""
    return models(service_of(request).options.experiment, 0)
