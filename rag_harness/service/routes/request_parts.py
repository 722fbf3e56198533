"""What every route reads from a request."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request

from rag_harness.errors import QueryTooLongError
from rag_harness.service.access.principal import COLLECTION, Principal
from rag_harness.service.answering import ServiceQuestion, query_too_long
from rag_harness.service.corpus.serving import Serving
from rag_harness.service.observing.trace_ids import TraceIds, trace_ids
from rag_harness.service.problems import ProblemError
from rag_harness.service.questions import QuestionUnderWay
from rag_harness.service.serviced import Service

InCollection = Annotated[
    str | None, Query(pattern=f"^{COLLECTION}$", description="of a key that is bound to none: which one")
]


def service_of(request: Request) -> Service:
    """Return the server that got a request."""
    service: Service = request.app.state.service
    return service


def ids_of(request: Request) -> TraceIds:
    """Return the ids of a request's trace: the X-Request-ID here, and the client's id elsewhere."""
    drawn, said = str(request.state.trace_id), trace_ids(request.headers.get("traceparent"))
    return TraceIds(drawn, said.exported if said.parent else drawn, said.parent, said.sampled)


async def asking(
    request: Request,
    principal: Principal,
    question: ServiceQuestion,
    collection: str | None,
    debug: bool = False,
    conversation: str = "",
) -> QuestionUnderWay:
    """Return a question that may be asked now.

    Raises:
        ProblemError: the question is too long, its collection or conversation does not exist, the conversation takes no
            turn now, or the key's quota is used up.
    """
    service, limit = service_of(request), service_of(request).options.query
    if len(question.text) > limit:
        detail = f"The question has {len(question.text)} characters, and may have {limit}."
        raise ProblemError(413, "query_too_long", detail)
    where = service.collection(principal, collection)
    _check_tokens(where.serving, question.text)
    ids, name = ids_of(request), conversation
    found = QuestionUnderWay(service, principal, where.name, where.serving, question, ids, debug, name)
    if name:
        service.conversations.check(found.owner, name)
    return await found.granted()


def _check_tokens(serving: Serving, question: str) -> None:
    """Refuse a question that is too long for the embedder, before it counts against a quota."""
    try:
        serving.check(question)
    except QueryTooLongError as error:
        raise query_too_long(error) from error
