"""The routes of a service: questions, conversations, documents, health, traces, metrics and the page."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Depends, File, Form, Query, Request, Response, UploadFile
from fastapi.responses import StreamingResponse

from rag_harness.core.cache import NO_ROOM, check_room
from rag_harness.core.errors import NoRoomError, QueryTooLongError
from rag_harness.core.escaping import page_script, page_style
from rag_harness.core.package import VERSION
from rag_harness.core.types import PipelineOutput
from rag_harness.service.answer_stream import AnswerEvent
from rag_harness.service.app_state import Owner, Service, inputs_of, no_such_document
from rag_harness.service.authentication import GuardedRoute, access_of, asks
from rag_harness.service.corpus.contents import DEFAULT, DocumentInfo, Serving
from rag_harness.service.corpus.document_table import collection_sizes, total_size
from rag_harness.service.corpus.intake import SPARE
from rag_harness.service.database import StateError
from rag_harness.service.keys import COLLECTION, Principal
from rag_harness.service.middleware import a_place, fault_of_value, is_flat, while_waited_for
from rag_harness.service.monitoring import CONTENT_TYPE
from rag_harness.service.observations import TraceIds, trace_ids
from rag_harness.service.problems import ProblemError, no_room, shortened
from rag_harness.service.questions import QuestionUnderWay, ReadInputs, ServiceQuestion, query_too_long
from rag_harness.service.schemas import AnswerAgain, Answered, Asked, Conversation, Doc, Docs, Health, Rating, Ready

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


# Answers as server-sent events (HTML Standard, 9.2).

EVENTS = "text/event-stream"
_WORDS = {"type": "string"}
SENT: dict[str, Any] = {
    EVENTS: {"schema": {"type": "object", "required": ["data"], "properties": {"event": _WORDS, "data": _WORDS}}}
}
"""The part of the OpenAPI document about streams: the shape of one event."""


def wants_events(request: Request) -> bool:
    """Return whether a client wants events."""
    return EVENTS in request.headers.get("accept", "")


def streamed(told: AsyncGenerator[AnswerEvent, None]) -> StreamingResponse:
    """Return the response that sends events as they come. If the client leaves, the work ends."""
    return StreamingResponse(_lines(told), media_type=EVENTS, headers={"X-Accel-Buffering": "no"})


async def _lines(told: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[str, None]:
    async with aclosing(told) as events:
        async for event in events:
            yield f"event: {event.name}\ndata: {json_line(event.data)}\n\n"


def json_line(data: object) -> str:
    """Return JSON on one line."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))


# ``POST /query``: a question, answered in one piece or as a stream.


class _Shape:
    """An answer in the form of this route."""

    def body(self, asking: QuestionUnderWay, output: PipelineOutput) -> Mapping[str, Any]:  # noqa: ARG002
        return asking.shown().model_dump(mode="json")

    def failure(self, problem: ProblemError) -> Mapping[str, Any]:
        return problem.body()


query_router: APIRouter = APIRouter(tags=["questions"], route_class=GuardedRoute)


@query_router.post(
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
    `replace` where the streamed text is withdrawn.

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


conversations_router: APIRouter = APIRouter(prefix="/conversations", tags=["questions"], route_class=GuardedRoute)
ConversationAsks = Annotated[Principal, Depends(asks("query"))]


@conversations_router.post("", response_model=Conversation, status_code=201, summary="Begin a conversation")
async def begin(request: Request, principal: ConversationAsks, collection: InCollection = None) -> Conversation:
    """Keep what is said in a conversation, in memory: of this key alone, until a day after its last turn.

    Send its id with each question, `POST /query` with `conversation`.
    """
    owner = _owner(request, principal, collection)
    return Conversation(conversation=service_of(request).conversations.begin(owner))


@conversations_router.delete("/{conversation}", status_code=204, summary="Forget a conversation")
async def end(
    request: Request, conversation: str, principal: ConversationAsks, collection: InCollection = None
) -> Response:
    """Forget what was said. Traces of its answers stay as long as traces do."""
    service_of(request).conversations.end(_owner(request, principal, collection), conversation)
    return Response(status_code=204)


def _owner(request: Request, principal: Principal, collection: str | None) -> Owner:
    return service_of(request).collection(principal, collection).name, principal.key_id


# ``POST /ingest``, ``GET /ingest/{id}``, ``GET /documents``, ``DELETE /documents/{id}``.

documents_router: APIRouter = APIRouter(tags=["documents"], route_class=GuardedRoute)
Ingests = Annotated[Principal, Depends(asks("ingest"))]
_MOST_METADATA = 16_384


@documents_router.post("/ingest", response_model=Doc, responses={202: {"model": Doc}}, summary="Add a document")
async def ingest(
    request: Request,
    response: Response,
    principal: Ingests,
    file: Annotated[UploadFile, File(description="its name's ending says what it is: md, pdf, docx, …")],
    metadata: Annotated[str, Form(max_length=_MOST_METADATA, description='a JSON object, e.g. {"url": …}')] = "{}",
    collection: InCollection = None,
) -> Doc:
    """Read, cut, embed and index a file; one of the same name is replaced. Larger files are answered with 202."""
    service, said = service_of(request), _metadata(metadata)
    name = file.filename or ""
    where = await service.collections.create(service.name_for(principal, collection))
    async with _kept(file, service.incoming) as kept:
        if kept.stat().st_size <= service.options.at_once:
            return _doc(await where.ingest(name, kept, said))
        doc_id = await where.start_ingest(name, kept, said)
    response.status_code = 202
    response.headers["Location"] = f"/ingest/{doc_id}"
    return _doc(where.document(doc_id))


@asynccontextmanager
async def _kept(upload: UploadFile, folder: Path) -> AsyncIterator[Path]:
    """Write an upload into ``folder``, under a random name."""
    handle, path = tempfile.mkstemp(dir=folder)
    try:
        try:
            check_room(folder, SPARE + (upload.size or 0))
            with open(handle, "wb") as target:  # noqa: PTH123 - a descriptor
                await run_sync(shutil.copyfileobj, upload.file, target)
        except NoRoomError as error:
            raise no_room() from error
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            raise no_room() from error
        yield Path(path)
    finally:
        Path(path).unlink(missing_ok=True)


def _metadata(text: str) -> dict[str, Any]:
    try:
        said = json.loads(text) if is_flat(text) else None
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise ProblemError(422, "bad_metadata", 'metadata is not a JSON object, such as {"url": "https://…"}.')
    if fault := fault_of_value(said, "metadata"):
        raise ProblemError(422, "bad_metadata", f"{shortened(fault)}. Leave it out, or send another value.")
    return said


@documents_router.get("/ingest/{doc_id}", response_model=Doc, summary="How far is a document?")
async def ingested(request: Request, doc_id: str, principal: Ingests, collection: InCollection = None) -> Doc:
    """Say what has come of a document so far."""
    where = service_of(request).collection(principal, collection)
    try:
        return _doc(where.document(doc_id))
    except KeyError:
        raise no_such_document() from None


@documents_router.get("/documents", response_model=Docs, summary="Which documents are there?")
async def documents(request: Request, principal: Ingests, collection: InCollection = None) -> Docs:
    """List the documents of a collection by name."""
    where = service_of(request).collection(principal, collection)
    return Docs(collection=where.name, documents=[_doc(each) for each in where.documents()])


@documents_router.delete("/documents/{doc_id}", status_code=204, summary="Remove a document")
async def delete(request: Request, doc_id: str, principal: Ingests, collection: InCollection = None) -> Response:
    """Remove a document: after the answer no question finds it."""
    where = service_of(request).collection(principal, collection)
    try:
        await where.delete(doc_id)
    except KeyError:
        raise no_such_document() from None
    return Response(status_code=204)


def _doc(info: DocumentInfo) -> Doc:
    return Doc(
        doc_id=info.doc_id,
        name=info.name,
        status=info.status,
        why=info.why,
        chunks_created=info.chunks,
        dropped=info.dropped,
        coverage=info.coverage,
        bytes=info.bytes,
        created=info.created,
    )


# ``GET /health``, ``GET /ready``: whether the process lives, and whether it can answer.

health_router: APIRouter = APIRouter(tags=["server"])


@health_router.get("/health", response_model=Health, summary="Does it live, and what does it have?")
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


@health_router.get("/ready", response_model=Ready, responses={503: {"model": Ready}}, summary="Can it answer?")
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


# ``GET /``: the page for people, and its two files.

page_router: APIRouter = APIRouter(include_in_schema=False)
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing may come from elsewhere or stand inline. No text can become markup, and the page cannot be put in a frame."""
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-cache",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    kind: str
    tag: str


@page_router.api_route("/", methods=["GET", "HEAD"])
async def page(request: Request) -> Response:
    """Return the page."""
    return _answered(request, _file("index.html", "text/html", str))


@page_router.api_route("/page.css", methods=["GET", "HEAD"])
async def style(request: Request) -> Response:
    """Return its style."""
    return _answered(request, _file("page.css", "text/css", page_style))


@page_router.api_route("/page.js", methods=["GET", "HEAD"])
async def script(request: Request) -> Response:
    """Return its script."""
    return _answered(request, _file("page.js", "text/javascript", page_script))


@cache
def _file(name: str, kind: str, whole: Callable[[str], str]) -> _File:
    content = whole(files("rag_harness.service").joinpath("page", name).read_text(encoding="utf-8")).encode()
    return _File(content, f"{kind}; charset=utf-8", f'"{hashlib.sha256(content).hexdigest()[:32]}"')


def _answered(request: Request, file: _File) -> Response:
    headers = {**_HEADERS, "ETag": file.tag}
    known = request.headers.get("If-None-Match", "").replace("W/", "")
    if file.tag in (one.strip() for one in known.split(",")):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


traces_router: APIRouter = APIRouter(tags=["traces"], route_class=GuardedRoute)
TraceAsks = Annotated[Principal, Depends(asks("query"))]


@traces_router.get("/traces/{trace_id}", response_model=dict[str, Any], summary="How did an answer come about?")
async def trace(request: Request, trace_id: str, principal: TraceAsks) -> dict[str, Any]:
    """Return the spans of an answer, with its decisions; its words only where the server keeps them."""
    found = service_of(request).traces.get(trace_id, principal.collection)
    if found is None:
        raise _no_such_trace()
    return found


@traces_router.get("/traces/{trace_id}/answer", response_model=AnswerAgain, summary="What was answered?")
async def answer(request: Request, trace_id: str, principal: TraceAsks) -> dict[str, Any]:
    """Return an answer again, with its question and its sources.

    It is one of the last 1,000 since the server began, or any if the server keeps words.
    """
    found = service_of(request).traces.answer(trace_id, principal.collection)
    if found is None:
        raise ProblemError(404, "no_such_answer", "There is no such answer: it is not kept any more, or never was.")
    return found


@traces_router.post("/traces/{trace_id}/rating", status_code=204, summary="Say what you think of an answer")
async def rate(request: Request, trace_id: str, rating: Rating, principal: TraceAsks) -> Response:
    """Keep a thumb and a comment: `rag-harness queries from-traces` makes test cases of them."""
    service = service_of(request)
    if not await service.traces.rate(trace_id, principal.collection, rating.thumb, rating.comment):
        raise _no_such_trace()
    service.metrics.rated(rating.thumb)
    return Response(status_code=204)


@traces_router.get("/metrics", response_class=Response, summary="What Prometheus reads")
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
