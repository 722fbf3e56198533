"""Chat completions in the form of OpenAI, for any chat front end."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse

from rag_harness.core.concurrency import in_a_thread
from rag_harness.core.types import PipelineOutput, Usage
from rag_harness.models.reader import RequestError
from rag_harness.service.answer_stream import AnswerEvent
from rag_harness.service.app_state import inputs_of
from rag_harness.service.authentication import GuardedRoute, asks
from rag_harness.service.keys import Principal
from rag_harness.service.middleware import EXPECTED, PROBLEM, a_place, problem_of, while_waited_for
from rag_harness.service.problems import ProblemError
from rag_harness.service.questions import QuestionUnderWay, ReadInputs, ServiceQuestion
from rag_harness.service.routes import EVENTS, SENT, asking, json_line, service_of
from rag_harness.service.schemas import Failure, Problem

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """A question of a chat.

    Attributes:
        query: the last message of the user.
        history: the earlier messages of user and assistant, as objects with ``role`` and ``content``.
        stream: whether to send the answer as it comes.
        include_usage: whether to end the stream with the tokens that were used.
    """

    query: str
    history: tuple[Mapping[str, str], ...]
    stream: bool = False
    include_usage: bool = False


def asked_of(body: Any, model: str) -> ChatQuestion:
    """Read a request that was parsed from JSON.

    Only messages of user and assistant are read: the experiment has its own instructions, which no client may change.
    Sampling options and tools are left out, too: the served experiment must be the one that was evaluated.

    Args:
        body: the request's body.
        model: the name of the experiment, the only model there is.

    Raises:
        RequestError: the request cannot be answered; ``status`` and ``body`` are in OpenAI's form.
    """
    if not isinstance(body, dict):
        raise RequestError(400, "The request body must be a JSON object.")
    if body.get("model") != model:
        message = f"The model {_short(body.get('model'))} does not exist here; this service has {model!r}."
        raise RequestError(404, message, "model_not_found", "model")
    _refuse_other_forms(body)
    options = body.get("stream_options") or {}
    if not isinstance(options, dict):
        raise _bad("stream_options", "must be an object", options)
    query, history = _turns(body.get("messages"))
    return ChatQuestion(query, history, _flag(body, "stream"), _flag(options, "include_usage", "stream_options."))


def _refuse_other_forms(body: Mapping[str, Any]) -> None:
    if body.get("n") not in (None, 1):
        raise _bad("n", "must be 1: a question has one answer here", body["n"])
    form = body.get("response_format") or {"type": "text"}
    if not isinstance(form, dict) or form.get("type") != "text":
        raise _bad("response_format", 'must be {"type": "text"}: answers are text with citations', form)


def _flag(holder: Mapping[str, Any], name: str, above: str = "") -> bool:
    value = holder.get(name)
    if value is not None and not isinstance(value, bool):
        raise _bad(f"{above}{name}", "must be true or false", value)
    return bool(value)


def _turns(messages: Any) -> tuple[str, tuple[Mapping[str, str], ...]]:
    if not isinstance(messages, list) or not messages:
        raise _bad("messages", "must be a list of at least one message", messages)
    turns = list(_spoken(messages))
    last = max((n for n, turn in enumerate(turns) if turn["role"] == "user"), default=None)
    if last is None:
        raise _bad("messages", "must have a message of the user", ", ".join(turn["role"] for turn in turns))
    if not turns[last]["content"].strip():
        raise _bad("messages", "must end with a question: the user's last message is empty", "")
    return turns[last]["content"], tuple(turn for turn in turns[:last] if turn["content"].strip())


def _spoken(messages: Sequence[Any]) -> Iterator[Mapping[str, str]]:
    for n, message in enumerate(messages):
        place = f"messages[{n}]"
        if not isinstance(message, dict):
            raise _bad(place, "must be an object", message)
        role = message.get("role")
        if role not in _ROLES:
            raise _bad(f"{place}.role", f"must be one of {', '.join(_ROLES)}", role)
        if role in ("user", "assistant"):
            yield {"role": role, "content": _text(message.get("content"), f"{place}.content")}


def _text(content: Any, place: str) -> str:
    """Return the text of a message: a string, a list of parts, or nothing if the assistant called a tool."""
    if content is None or isinstance(content, str):
        return _whole(content or "", place)
    if not isinstance(content, list):
        raise _bad(place, "must be a text or a list of parts", content)
    return "\n".join(_part(part, f"{place}[{n}]") for n, part in enumerate(content))


def _part(part: Any, place: str) -> str:
    text = part.get("text") if isinstance(part, dict) else None
    if not isinstance(part, dict) or part.get("type") not in ("text", "refusal"):
        kind = part.get("type") if isinstance(part, dict) else part
        raise _bad(place, "must be a part of type text: images, audio and files are not read", kind)
    if part["type"] == "refusal":
        text = part.get("refusal")
    if not isinstance(text, str):
        raise _bad(f"{place}.text", "must be a text", text)
    return _whole(text, place)


def _whole(text: str, place: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _bad(place, "must have no half of a character (a lone surrogate)", text) from None
    return text


def _bad(param: str, wanted: str, found: Any) -> RequestError:
    return RequestError(400, f"'{param}' {wanted}; found {_short(found)}.", param=param)


def _short(found: Any) -> str:
    """Return the found value as short text: a nest of ten thousand lists is not worth printing."""
    return repr(found)[:80] if isinstance(found, (str, int, float, bool, type(None))) else type(found).__name__


# An answer in the form of OpenAI's chat completions, with citations, so that any chat front end can show it.

WITHDRAWN = "\n\n(What stands above is withdrawn.)\n\n"
"""Stands between withdrawn words and their replacement: these streams cannot take words back."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What every part of one answer has: the experiment as its model, an id, and seconds since 1970."""

    model: str
    id: str
    created: int

    def whole(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the answer in one piece.

        Args:
            body: ``answer``, ``citations``, ``decision``, ``confidence``, ``reasons`` and ``history_read`` as
                ``POST /query`` has them, and ``usage`` by ``usage_of``.
        """
        message = {"role": "assistant", "content": body["answer"], "refusal": None, **_beside(body, body["citations"])}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self.envelope("chat.completion"), "choices": [choice], "usage": body["usage"]}

    async def chunks(
        self, events: AsyncGenerator[AnswerEvent, None], include_usage: bool = False
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Yield the parts of a streamed answer. Its citations are in the last delta. ``events`` end with the stream.

        If an experiment may withhold an answer, pass strict events. If words are withdrawn all the same, the stream
        says so and goes on with their replacement; offsets of citations then count all text that was sent. An ``error``
        ends the stream with an ``error_body`` from ``Shows.failure``.
        """
        stream = _Stream(self, include_usage)
        yield self.chunk({"role": "assistant", "content": ""})
        async with aclosing(events):
            async for event in events:
                for chunk in stream.chunks(event):
                    yield chunk

    def chunk(self, delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        """Return a part that adds ``delta`` to the message."""
        choice = {"index": 0, "delta": dict(delta), "logprobs": None, "finish_reason": finish}
        return {**self.envelope("chat.completion.chunk"), "choices": [choice]}

    def envelope(self, kind: str) -> dict[str, Any]:
        """Return the fields of every part; ``kind`` is its type, in OpenAI's words."""
        return {"id": self.id, "object": kind, "created": self.created, "model": self.model}


@dataclass
class _Stream:
    """The state of a stream: how many characters were ``sent``, and how many of them came before the valid answer."""

    completion: Completion
    include_usage: bool
    sent: int = 0
    before: int = 0
    citations: list[Mapping[str, Any]] = field(default_factory=list)

    def chunks(self, event: AnswerEvent) -> Iterator[dict[str, Any]]:
        """Yield the parts that an event adds to the stream."""
        if event.name == "error":
            yield dict(event.data)
        elif event.name == "citation":
            self.citations.append(event.data)
        elif event.name == "done":
            yield from self._last(event.data)
        elif text := _text_of_event(event):
            self.before = self.sent + len(WITHDRAWN) if event.name == "replace" else self.before
            self.sent += len(text)
            yield self.completion.chunk({"content": text})

    def _last(self, body: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        moved = [_moved(each, self.before) for each in self.citations]
        yield self.completion.chunk(_beside(body, moved), "stop")
        if self.include_usage:
            yield {**self.completion.envelope("chat.completion.chunk"), "choices": [], "usage": body["usage"]}


def _text_of_event(event: AnswerEvent) -> str:
    """Return the text that an event adds to the stream."""
    if event.name == "replace":
        return f"{WITHDRAWN}{event.data['answer']}"
    return str(event.data["text"]) if event.name == "token" else ""


def _beside(body: Mapping[str, Any], citations: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the fields of a message beside its text: OpenAI's annotations, and our own fields."""
    verdict = {name: body[name] for name in ("decision", "confidence", "reasons", "history_read")}
    annotations = [_annotation(each) for each in citations if each["url"]]
    return {"annotations": annotations, "citations": [dict(each) for each in citations], "verdict": verdict}


def _annotation(citation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the annotation of a citation with an address; ``end_index`` is exclusive, as in a slice."""
    places = {"start_index": citation["answer_start"], "end_index": citation["answer_end"]}
    title = citation["section"] or citation["document"]
    return {"type": "url_citation", "url_citation": {**places, "title": title, "url": citation["url"]}}


def _moved(citation: Mapping[str, Any], shift: int) -> dict[str, Any]:
    return {**citation, **{name: citation[name] + shift for name in ("answer_start", "answer_end")}}


def usage_of(output: PipelineOutput) -> dict[str, int]:
    """Return the tokens of all calls that an answer took."""
    used = reduce(add, (call.usage for call in output.calls), Usage()) if output.stages else output.usage
    prompt, said = used.prompt_tokens, used.completion_tokens
    return {"prompt_tokens": prompt, "completion_tokens": said, "total_tokens": prompt + said}


def error_body(status: int, message: str, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """Return OpenAI's shape of an error."""
    kind = "server_error" if status >= 500 else "rate_limit_error" if status == 429 else "invalid_request_error"
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def models(experiment: str, created: int) -> dict[str, Any]:
    """Return the body of ``GET /v1/models``: front ends ask for the models before anything else."""
    return {
        "object": "list",
        "data": [{"id": experiment, "object": "model", "created": created, "owned_by": "rag-harness"}],
    }


# ``POST /v1/chat/completions``, ``GET /v1/models``: any chat front end can ask here as it asks OpenAI.

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
