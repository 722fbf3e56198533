"""The command rag-harness endpoint try: requests, answers and spans of a service."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rag_harness.core.errors import (
    DeadlineError,
    ModelCallError,
    ModelOutputError,
    RagHarnessError,
    SettingsError,
    TraceError,
    unknown,
)
from rag_harness.core.escaping import say
from rag_harness.core.json_text import read_json
from rag_harness.core.types import SESSION, Query
from rag_harness.frontends.cli import FOUND

if TYPE_CHECKING:
    from rag_harness.core.settings import Settings
    from rag_harness.core.settings.endpoints import EndpointSpec
    from rag_harness.pipelines.endpoint.answer import AnswerField, AnswerReader, Context
    from rag_harness.pipelines.endpoint.decoders import ResponseDecoder
    from rag_harness.pipelines.endpoint.exchange import WireAnswer
    from rag_harness.pipelines.endpoint.requests import Request, Requests, SessionId
    from rag_harness.pipelines.endpoint.spans import AwaitedTrace
    from rag_harness.pipelines.otel.spans import SpanRecord
    from rag_harness.pipelines.otel.steps import SeenStep


# ``rag-harness endpoint try``: asks a service, and shows requests, answers and what was read of them.


def try_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options: which service is asked what."""
    parser.add_argument("endpoint", metavar="FILE", help="TOML file of a service, or the name of one in pyproject.toml")
    parser.add_argument("questions", metavar="QUESTION", nargs="+", help="what it is asked; several: turn by turn")
    parser.add_argument("--inputs", default="{}", metavar="JSON", help="what else the user sent, an object")


def run_try(chosen: argparse.Namespace) -> int:
    """Ask once, or turn by turn, and show the answers. The exit status is 1 if a path of the spec finds nothing.

    Raises:
        SettingsError: the spec or the inputs cannot be used.
        PrerequisiteError: the service does not say its version.
        ModelCallError, CriticalError: the service refused, or cannot be reached.
    """
    from rag_harness.core.settings.loading import load_settings
    from rag_harness.pipelines.endpoint.answer import AnswerReader, most_contexts
    from rag_harness.pipelines.endpoint.experiment import ask_for_version
    from rag_harness.pipelines.endpoint.requests import Requests

    settings = load_settings({"mode": "live"})
    spec, inputs = _spec(settings, chosen.endpoint), _inputs(chosen.inputs)
    requests = Requests(spec, settings.path("."))
    reader = AnswerReader(spec.read, spec.name, most_contexts(settings))
    if spec.version:
        said = f"{spec.name}, version {ask_for_version(spec, settings, requests)}"
        show_part("who", [said], requests.secrets)
    return asyncio.run(EndpointProbe(spec, settings, requests, reader).ask_all(chosen.questions, inputs))


def _spec(settings: Settings, name: str) -> EndpointSpec:
    from rag_harness.core.settings.endpoints import read_endpoint

    known = {spec.name: spec for spec in settings.endpoints}
    if name in known:
        return known[name]
    if not Path(name).is_file() and not name.endswith(".toml"):
        raise SettingsError(f"{unknown('endpoint', name, known)} Name a file, or one of pyproject.toml here.")
    return read_endpoint(Path(name))


def _inputs(text: str) -> dict[str, Any]:
    try:
        found = read_json(text)
    except ValueError as error:
        raise SettingsError(f"--inputs {text!r} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise SettingsError(f'--inputs {text!r} is not an object. Write: --inputs \'{{"selected_text": "…"}}\'')
    return found


_MOST = 30
"""The most spans that are listed."""


class TriedSpans:
    """Listens as a run does.

    Args:
        spec: a service that sends its spans.
    """

    def __init__(self, spec: EndpointSpec) -> None:
        # Its imports are needed only where spans are received.
        from rag_harness.models.recording.scrubbing import Cleaner
        from rag_harness.pipelines.endpoint.spans import Listening

        # What is shown goes through show_part, which hides the secrets.
        self._listening = Listening(spec, Cleaner())

    @contextmanager
    def expecting(self) -> Iterator[AwaitedTrace]:
        """Keep the spans of a new trace during the block."""
        with self._listening.expecting() as trace:
            yield trace

    async def of(self, trace: AwaitedTrace) -> Sequence[SpanRecord]:
        """Return the spans of a trace, once it is whole.

        Raises:
            TraceError: it is not whole in time.
        """
        return await self._listening.spans_of(trace)

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()


def spans_shown(spans: Sequence[SpanRecord]) -> Iterator[str]:
    """Yield a line a span, in the order in which they began."""
    from rag_harness.pipelines.otel.spans import kind_of

    for span in sorted(spans, key=lambda each: each.start_ns)[:_MOST]:
        yield f"{kind_of(span) or '-':<17}{span.name[:40]:<40} {span.ms:,.0f} ms{', failed' if span.failed else ''}"
    if len(spans) > _MOST:
        yield f"… {len(spans) - _MOST:,} more spans"


def steps_shown(spans: Sequence[SpanRecord], answer: str) -> tuple[list[str], bool]:
    """Return a line a step that a run reads of the spans, and whether it can read them; else the line says why not."""
    from rag_harness.pipelines.otel.steps import read_trace

    try:
        return [_step(step) for step in read_trace(spans, answer).steps], True
    except TraceError as error:
        return [f"nothing: {error}"], False


def _step(step: SeenStep) -> str:
    if step.returns_documents:
        return f"{step.kind or 'join':<17}{step.name:<23} {len(step.found or ())} documents"
    if step.model_call is None:
        return f"{step.kind:<17}{step.name}"
    call = step.model_call.call
    used = f"{call.usage.prompt_tokens:,} and {call.usage.completion_tokens:,} tokens"
    return f"{step.kind:<17}{step.name:<23} {call.model}, {used}"


# Asks a service in a terminal, question by question, and shows what goes there and what comes.

_T = TypeVar("_T")
_LINES = 40
"""The most lines of a body that are shown."""
_LONGEST = 160


class EndpointProbe:
    """Asks one service.

    Args:
        spec: the service.
        settings: of the run; the seconds that a call may take.
        requests: makes the requests.
        reader: reads the answers.
    """

    def __init__(self, spec: EndpointSpec, settings: Settings, requests: Requests, reader: AnswerReader) -> None:
        from rag_harness.models.throttling import Meter
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
        from rag_harness.pipelines.endpoint.client import hide

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
        from rag_harness.core.concurrency import Deadline
        from rag_harness.models.calls import PassingError
        from rag_harness.pipelines.endpoint.client import broken_connections

        passing: tuple[type[Exception], ...] = (PassingError, DeadlineError, *broken_connections())
        try:
            return await Deadline(self._seconds).bound(work)
        except passing as error:
            said = f"{self._spec.name}: {self._spec.url}: {error}. A run tries this again, 3 times."
            raise ModelCallError(said) from error

    def _document(self, heard: ResponseDecoder, request: Request) -> Any:
        from rag_harness.pipelines.endpoint.client import tool_content

        document = heard.document()
        if self._spec.kind == "mcp":
            document = tool_content(document, self._spec.name)
        if request.talk is not None:
            request.talk.check_not_lost(document)
        return document


def _sent(spec: EndpointSpec, request: Request) -> Iterator[str]:
    from rag_harness.core.settings.endpoints import SESSION_SENT
    from rag_harness.core.settings.roles import VARIABLE

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
    from rag_harness.pipelines.endpoint.client import hidden

    for at, line in enumerate(lines):
        say(f"{'' if at else title:<6}{hidden(line, secrets)}")
