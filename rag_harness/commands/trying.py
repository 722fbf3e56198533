"""Asks a service in a terminal, question by question, and shows what goes there and what comes."""

from __future__ import annotations

import json
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.commands import FOUND
from rag_harness.commands.tried_spans import TriedSpans, spans_shown, steps_shown
from rag_harness.errors import DeadlineError, ModelCallError, ModelOutputError, RagHarnessError
from rag_harness.shown.terminal import say
from rag_harness.types import SESSION, Query

if TYPE_CHECKING:
    from rag_harness.pipelines.endpoint.contexts import Context
    from rag_harness.pipelines.endpoint.exchange import WireAnswer
    from rag_harness.pipelines.endpoint.heard import Heard
    from rag_harness.pipelines.endpoint.request import Request
    from rag_harness.pipelines.endpoint.requests import Requests
    from rag_harness.pipelines.endpoint.service_answer import AnswerField, AnswerReader
    from rag_harness.pipelines.endpoint.sessions import SessionId
    from rag_harness.settings import Settings
    from rag_harness.settings.endpoint_spec import EndpointSpec
    from rag_harness.traces.span_inbox import AwaitedTrace
    from rag_harness.traces.span_record import SpanRecord

_T = TypeVar("_T")
_LINES = 40
"""The most lines of a body that are shown."""
_LONGEST = 160


class Trying:
    """Asks one service.

    Args:
        spec: the service.
        settings: of the run; the seconds that a call may take.
        requests: makes the requests.
        reader: reads the answers.
    """

    def __init__(self, spec: EndpointSpec, settings: Settings, requests: Requests, reader: AnswerReader) -> None:
        from rag_harness.models.meter import Meter
        from rag_harness.pipelines.endpoint.exchange import Exchange

        self._spec, self._requests, self._reader = spec, requests, reader
        self._seconds = spec.timeout or settings.timeout
        self._exchange = Exchange(spec, Meter(settings), reader.usage)
        self._spans = TriedSpans(spec) if spec.traces else None

    async def ask_all(self, questions: Sequence[str], inputs: Mapping[str, Any]) -> int:
        """Ask one after the other, each with what was said before it, and return the exit status."""
        said: dict[str, Any] = {}
        try:
            for turn, question in enumerate(questions, 1):
                place = {"conversation": "try", "turn": turn} if len(questions) > 1 else {}
                query = Query(f"try#{turn}" if place else "try", question, {**inputs, **place, **said})
                if place:
                    show_part("turn", [f"{turn}: {question}"], self._requests.secrets)
                found = await self._ask(query)
                if found is None:
                    return FOUND
                said = self._said_after(query, *found)
        finally:
            await self._exchange.aclose()
            if self._spans is not None:
                self._spans.close()
        return 0

    def _said_after(self, query: Query, document: Any, session: SessionId | None) -> dict[str, Any]:
        answer = self._reader.read(document).answer
        replies = [{"role": "user", "content": query.text}, {"role": "assistant", "content": answer}]
        told = {} if session is None else {SESSION: session}
        return {"history": [*query.inputs.get("history", ()), *replies], **told}

    async def _ask(self, query: Query) -> tuple[Any, SessionId | None] | None:
        """Return the answer and the session of the next turn; None where something cannot be read."""
        from rag_harness.pipelines.endpoint.refusals import hide

        secrets = self._requests.secrets
        try:
            request = await self._bound(self._exchange.in_its_session(self._requests.of(query)))
            with self._spans.expecting() if self._spans is not None else nullcontext() as trace:
                answered = await self._answered(request, trace)
                spans = await self._came(trace)
        except RagHarnessError as error:
            hide(error, secrets)
            show_part("came", error.raw.splitlines()[:_LINES] if isinstance(error, ModelOutputError) else (), secrets)
            raise
        fields = list(self._reader.fields(answered.document))
        show_part("read", map(_read, fields), secrets)
        session = request.talk.after(answered.document, is_new=True) if request.talk else None
        if session is not None:
            by = self._spec.session.path or self._spec.session.id
            show_part("", [f"{'session':<17}{by:<23} {session!r}"], secrets)
        is_read = not any(field.problem for field in fields)
        if is_read and spans:
            steps, is_read = steps_shown(spans, self._reader.read(answered.document).answer)
            show_part("steps", steps, secrets)
        return (answered.document, session) if is_read else None

    async def _answered(self, request: Request, trace: AwaitedTrace | None) -> WireAnswer:
        if trace is not None:
            request = replace(request, headers=(*request.headers, ("traceparent", trace.traceparent)))
        show_part("sent", _sent(self._spec, request), self._requests.secrets)
        answered = await self._bound(self._exchange.answer(request, lambda heard: self._document(heard, request)))
        show_part("came", _came(answered), self._requests.secrets)
        return answered

    async def _came(self, trace: AwaitedTrace | None) -> Sequence[SpanRecord]:
        if trace is None or self._spans is None:
            return ()
        spans = await self._spans.of(trace)
        show_part("spans", spans_shown(spans), self._requests.secrets)
        return spans

    async def _bound(self, work: Coroutine[Any, Any, _T]) -> _T:
        from rag_harness.models.chat.failures import PassingError
        from rag_harness.pipelines.endpoint.refusals import broken_connections
        from rag_harness.work.deadline import Deadline

        passing: tuple[type[Exception], ...] = (PassingError, DeadlineError, *broken_connections())
        try:
            return await Deadline(self._seconds).bound(work)
        except passing as error:
            said = f"{self._spec.name}: {self._spec.url}: {error}. A run tries this again, 3 times."
            raise ModelCallError(said) from error

    def _document(self, heard: Heard, request: Request) -> Any:
        from rag_harness.pipelines.endpoint.mcp import tool_content

        document = heard.document()
        if self._spec.kind == "mcp":
            document = tool_content(document, self._spec.name)
        if request.talk is not None:
            request.talk.check_not_lost(document)
        return document


def _sent(spec: EndpointSpec, request: Request) -> Iterator[str]:
    from rag_harness.settings.endpoint_session import SESSION_SENT
    from rag_harness.settings.literal_keys import VARIABLE

    yield f"{spec.method} {request.url}"
    sent = dict(request.headers)
    for name, value in spec.headers:
        if name.lower() in sent:
            shown = sent[name.lower()] if SESSION_SENT.search(value) and not VARIABLE.search(value) else value
            yield f"{name}: {VARIABLE.sub('…', shown)}"
    if "traceparent" in sent:
        yield f"traceparent: {sent['traceparent']}"
    if request.body is not None:
        yield from _pretty(request.body)


def _came(answered: WireAnswer) -> Iterator[str]:
    recorded = answered.recorded
    first = "" if recorded.ttft_ms is None else f", first token after {recorded.ttft_ms:.0f} ms"
    kind = recorded.content_type or "no content type"
    yield f"{recorded.status} {kind}, {len(recorded.body):,} bytes in {recorded.total_ms:.0f} ms{first}"
    yield from _pretty(answered.document)


def _pretty(document: Any) -> Iterator[str]:
    lines = json.dumps(document, indent=1, ensure_ascii=False).splitlines()
    yield from (line[:_LONGEST] + "…" * (len(line) > _LONGEST) for line in lines[:_LINES])
    if len(lines) > _LINES:
        yield f"… {len(lines) - _LINES} more lines"


def _read(field: AnswerField) -> str:
    said = f"nothing: {field.problem}" if field.problem else _shown(field)
    return f"{field.name:<17}{field.path:<23} {said}"


def _shown(field: AnswerField) -> str:
    if field.value is None:
        return "nothing, and it may be missing"
    if field.name != "contexts":
        return repr(field.value)[:_LONGEST]
    first = [f"first: {_context(field.value[0])}"] if field.value else []
    return "; ".join([f"{len(field.value)}", *first])


def _context(context: Context) -> str:
    """Return what was read of a context; its document first, since that is what retrieval is measured by."""
    named = {"document": context.document, "id": context.id}
    said = [f"{name} {value!r}" if value else f"no {name}" for name, value in named.items()]
    said += [] if context.score is None else [f"score {context.score:g}"]
    return f"{', '.join(said)}, text {context.text!r}"[:_LONGEST]


def show_part(title: str, lines: Iterable[str], secrets: tuple[str, ...]) -> None:
    """Print lines with a title before the first, without secrets."""
    from rag_harness.pipelines.endpoint.refusals import hidden

    for at, line in enumerate(lines):
        say(f"{'' if at else title:<6}{hidden(line, secrets)}")
