"""Client of a service: recordings first, then the network, with retries, errors and MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_harness.core.concurrency import Deadline
from rag_harness.core.errors import (
    CriticalError,
    DeadlineError,
    ModelCallError,
    ModelOutputError,
    RagHarnessError,
    RecordingMissError,
)
from rag_harness.core.settings.endpoints import EndpointSpec
from rag_harness.core.settings.roles import bare_address
from rag_harness.models.calls import PassingError, retried, session_of_turn
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.playback import Playback
from rag_harness.models.recording.scrubbing import CleanedRequest, Cleaner, forms_of
from rag_harness.pipelines.endpoint.answer import AnswerReader
from rag_harness.pipelines.endpoint.decoders import ResponseDecoder, decoder_of, parsed_json
from rag_harness.pipelines.endpoint.requests import Request, SessionId, SessionTurn
from rag_harness.pipelines.endpoint.spans import AwaitedTrace, Listening, keep_spans, kept_spans, spans_file
from rag_harness.pipelines.otel.spans import SpanRecord

if TYPE_CHECKING:
    from rag_harness.pipelines.endpoint.exchange import Exchange, WireAnswer


# A tool over MCP's Streamable HTTP: initialize, tools/call, and the content of the result.
#
# Model Context Protocol, revision 2025-06-18, "Transports": one address; JSON-RPC by POST; JSON or a stream as
# response.

PROTOCOL_VERSION = "2025-06-18"
SESSION_HEADER = "mcp-session-id"
_HELLO = {
    "protocolVersion": PROTOCOL_VERSION,
    "capabilities": {},
    "clientInfo": {"name": "rag-harness", "version": "1"},
}


class McpSession:
    """A session with an MCP server. It is initialized once, before the first call.

    Args:
        post: sends a request; returns the headers and the JSON of the response, or None without one.
    """

    def __init__(self, post: Callable[[Request], Awaitable[tuple[Any, Any]]]) -> None:
        self._post = post
        self._joins: tuple[tuple[str, str], ...] | None = None
        self._lock: asyncio.Lock | None = None

    async def joined(self, request: Request) -> Request:
        """Return ``request`` with the headers of the session. The session is opened if needed.

        Raises:
            ModelCallError: the server refuses a session.
        """
        self._lock = self._lock or asyncio.Lock()
        async with self._lock:
            joins = self._joins = self._joins or await self._opened(request)
        return replace(request, headers=(*request.headers, *joins))

    async def _opened(self, request: Request) -> tuple[tuple[str, str], ...]:
        hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO}
        headers, said = await self._post(replace(request, body=hello))
        result = _result_of(said, "the MCP server")
        session = headers.get(SESSION_HEADER)
        joins = (("mcp-protocol-version", str(result.get("protocolVersion", PROTOCOL_VERSION))),)
        joins += ((SESSION_HEADER, session),) if session else ()
        ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await self._post(replace(request, body=ready, headers=(*request.headers, *joins)))
        return joins

    def forget(self, request: Request) -> bool:
        """Open a new session before the next call; return whether ``request`` belonged to a session.

        Many calls may notice at the same time that a session has ended. Only the first one opens the new session.
        """
        is_joined = SESSION_HEADER in dict(request.headers)
        if self._joins is not None and request.headers[-len(self._joins) :] == self._joins:
            self._joins = None
        return is_joined


def tool_content(response: Any, name: str) -> dict[str, Any]:
    """Return the result of a call as paths address it: ``text`` (all texts joined), ``content``,
    ``structuredContent``.

    If a tool has no structured content, but its text is a JSON object, ``structuredContent`` is that object.

    Raises:
        ModelCallError: the server or the tool reports an error.
        ModelOutputError: the response is not the result of a tool.
    """
    result = _result_of(response, name)
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ModelOutputError(f"{name} answered with no result of a tool: {json.dumps(result)[:200]}")
    texts = [item["text"] for item in content if isinstance(item, Mapping) and isinstance(item.get("text"), str)]
    if result.get("isError"):
        raise ModelCallError(f"{name}: the tool says that it failed: {' '.join(texts)[:300]}")
    text = "\n".join(texts)
    return {"structuredContent": _object(text), **result, "text": text}


def _result_of(response: Any, name: str) -> Mapping[str, Any]:
    if isinstance(response, Mapping) and isinstance(response.get("error"), Mapping):
        error = response["error"]
        raise ModelCallError(f"{name} refused: {error.get('message')} (code {error.get('code')})")
    result = response.get("result") if isinstance(response, Mapping) else None
    if not isinstance(result, Mapping):
        raise ModelOutputError(f"{name} answered with no JSON-RPC result: {json.dumps(response)[:200]}")
    return result


def _object(text: str) -> Any:
    try:
        found = parsed_json(text.encode(), "", "") if text.lstrip()[:1] == "{" else None
    except ModelOutputError:
        return None
    return found


# Errors for HTTP statuses other than success: temporary ones, errors of this call, and errors of all calls.

_HALTING = {
    401: "the key is missing or wrong",
    402: "there is no credit",
    403: "the key may not do this",
    404: "there is nothing at this address",
    405: "it does not take this method",
}
_PASSING = {408, 409, 425, 429}
_SHOWN = 200


class StatusError(Exception):
    """A temporary error status; ``response`` says how long to wait."""

    def __init__(self, message: str, response: Any) -> None:
        super().__init__(message)
        self.response = response


def hidden(text: str, secrets: tuple[str, ...]) -> str:
    """Remove secrets from a message of a server or a library. Messages go into rows and logs."""
    written = {form for secret in secrets for form in forms_of(secret)}
    # Messages quote texts, and quoting doubles each backslash.
    written |= {form.replace("\\", "\\\\") for form in written}
    for form in sorted(written, key=len, reverse=True):
        text = text.replace(form, "…")
    return text


def hide(error: Exception, secrets: tuple[str, ...]) -> None:
    """Remove secrets from an error that quotes a service."""
    error.args = tuple(hidden(said, secrets) if isinstance(said, str) else said for said in error.args)
    if isinstance(error, ModelOutputError):
        error.raw = hidden(error.raw, secrets)


def broken_connections() -> tuple[type[Exception], ...]:
    """Return the errors that mean: no connection, or a broken one."""
    from httpx2 import HTTPError

    return HTTPError, ConnectionError


def is_nobody_there(error: BaseException) -> bool:
    """Return whether an error means that no connection was made."""
    from httpx2 import ConnectError

    return isinstance(error, ConnectError)


def refused(response: Any, said: str, name: str, where: str) -> Exception:
    """Return the error for the status of ``response``. ``said`` is the body, ``where`` the place of the spec."""
    status = response.status_code
    shown = " ".join(said.split())[:_SHOWN]
    if 300 <= status < 400:
        to = bare_address(response.headers.get("location", "nowhere"))
        return CriticalError(
            f"{name} answered {status}: it redirects to {to}. Redirects are not followed, because the headers "
            f"would go there too. If that is the service, name it as url in {where}."
        )
    if status in _HALTING:
        return CriticalError(
            f"{name} refused with {status}: {_HALTING[status]}. It said: {shown!r}. Check url and headers in {where}."
        )
    if status in _PASSING or status >= 500:
        return PassingError(StatusError(f"{status}: {shown}", response))
    return ModelCallError(f"{name} refused the request with {status}: {shown!r}")


@dataclass(frozen=True)
class ServiceReply:
    """An answer of a service: its JSON (a stream's events are merged into one), and the times in milliseconds.

    ``sent`` is the request as it was sent, and ``session`` the session of the next turn; None without one. ``spans``
    are the spans of its trace; None where the service sends none.
    """

    document: Any
    status: int
    total_ms: float
    ttft_ms: float | None = None
    waited_ms: float = 0.0
    retries: int = 0
    recorded: bool = False
    recorded_at: str = ""
    sent: Request | None = None
    session: SessionId | None = None
    spans: tuple[SpanRecord, ...] | None = None


class Client:
    """The client of one service.

    Args:
        spec: the service.
        reader: finds errors and usage in its answers.
        exchange: makes the network connection when something is not recorded.
        timeout: seconds that one call may take, from its turn to its last byte.
        playback: the recordings; None where they are not used.
        secrets: values that no message shows.
        listening: receives the service's spans; None where it sends none.
    """

    def __init__(
        self,
        spec: EndpointSpec,
        reader: AnswerReader,
        exchange: Callable[[], Exchange],
        timeout: float,
        playback: Playback | None = None,
        secrets: tuple[str, ...] = (),
        listening: Listening | None = None,
    ) -> None:
        self._spec, self._reader, self._timeout = spec, reader, timeout
        self._connect = exchange
        self._exchange: Exchange | None = None
        self._is_known = False
        self._playback, self._secrets = playback, secrets
        # Replaced in tests.
        self._wait: Any = asyncio.sleep
        self._cleaner, self._listening = Cleaner(secrets), listening

    def is_recorded(self, request: Request) -> bool:
        """Return whether the answer to a request is recorded."""
        playback = self._playback
        if playback is None or playback.ask_again:
            return False
        file = playback.cassettes.file(self._asked(request))
        return file.is_file() and (self._listening is None or spans_file(file).is_file())

    def _asked(self, request: Request) -> CleanedRequest:
        assert self._playback is not None
        headers = dict(request.headers)
        return self._playback.cassettes.asked(self._spec.method, request.known_as, request.known_content, headers)

    async def ask(self, request: Request) -> ServiceReply:
        """Return the answer to ``request``.

        Raises:
            BudgetError: the call could pass the budget.
            CriticalError: no call can succeed: a rejected key, a wrong address, no server.
            ModelCallError: the call failed for good, after 3 retries with 1, 2 and 4 s between them.
            ModelOutputError: the answer cannot be parsed.
            RecordingMissError: the answer is not recorded, and this mode calls no service.
        """
        try:
            return await self._found_or_called(request)
        except RagHarnessError as error:
            hide(error, self._secrets)
            raise

    async def _found_or_called(self, request: Request) -> ServiceReply:
        playback = self._playback
        if playback is None:
            return await self._called(request, None)
        asked = self._asked(request)
        found = playback.find(asked)
        is_other = found is not None and playback.may_call and _is_of_another_session(request, found)
        if found is not None and not is_other and self._has_spans(playback, asked):
            return self._replayed(request, found, playback.cassettes.file(asked))
        self._allow(playback, asked)
        return await self._called(request, asked if playback.keep else None)

    def _has_spans(self, playback: Playback, asked: CleanedRequest) -> bool:
        """Return whether a recording has all that is needed of it.

        Raises:
            RecordingMissError: it has no spans, and this mode calls no service.
        """
        if self._listening is None or spans_file(playback.cassettes.file(asked)).is_file():
            return True
        if not playback.may_call:
            raise RecordingMissError(
                f"The answer to {asked} was recorded without its spans, and traces = {self._spec.traces!r} in "
                f"{self._spec.where} asks for them. {playback.refuse}"
            )
        return False

    @staticmethod
    def _allow(playback: Playback, asked: CleanedRequest) -> None:
        """Allow a call or raise. Without any recording the error is critical: no question can be answered."""
        try:
            playback.allow(asked)
        except RecordingMissError as error:
            if next(playback.cassettes.folder.glob("*.yaml"), None) is None:
                raise CriticalError(f"{error}; or ask it now: --rag-mode=live") from None
            raise

    def _replayed(self, request: Request, found: Recorded, file: Path) -> ServiceReply:
        heard = decoder_of(self._spec, found.content_type)
        heard.add(found.body)
        document = self._document(heard)
        sent = request.in_session(json.loads(found.session) if found.session else None)
        session = sent.talk.after(document) if sent.talk else None
        times, when = (found.total_ms, found.ttft_ms), found.recorded_at
        reply = ServiceReply(
            document, found.status, *times, recorded=True, recorded_at=when, sent=sent, session=session
        )
        return reply if self._listening is None else replace(reply, spans=tuple(kept_spans(file)))

    async def _called(self, request: Request, keep: CleanedRequest | None) -> ServiceReply:
        late = (
            f"no whole answer within {self._timeout:g} s. Allow more: timeout in {self._spec.where}, or --rag-timeout"
        )
        reply, retries, waited_ms = await retried(
            lambda time: self._once(request, keep, time),
            lambda: Deadline(self._timeout, late),
            self._given_up,
            self._wait,
        )
        return replace(reply, retries=retries, waited_ms=waited_ms)

    async def _once(self, request: Request, keep: CleanedRequest | None, time: Deadline) -> ServiceReply:
        if self._listening is None:
            return await self._kept(keep, *await self._answered(request, None, time))
        with self._listening.expecting() as trace:
            sent, answered = await self._answered(request, trace, time)
            # The time of waiting is nobody's: an exporter sends when it likes to.
            spans = await self._listening.spans_of(trace)
        reply = await self._kept(keep, sent, answered, spans)
        return replace(reply, spans=tuple(spans))

    async def _answered(
        self, request: Request, trace: AwaitedTrace | None, time: Deadline
    ) -> tuple[Request, WireAnswer]:
        """Return the request as it was sent in its session, and the answer."""
        self._exchange = self._exchange or self._connect()
        passing: tuple[type[Exception], ...] = (DeadlineError, *broken_connections())
        try:
            sent = await time.bound(self._exchange.in_its_session(request))
            traced = (
                sent if trace is None else replace(sent, headers=(*sent.headers, ("traceparent", trace.traceparent)))
            )
            answered = self._exchange.answer(traced, lambda heard: self._document(heard, sent.talk))
            return sent, await time.bound(answered)
        except PassingError as failure:
            hide(failure.cause, self._secrets)
            raise
        except passing as error:
            hide(error, self._secrets)
            raise PassingError(error) from error
        finally:
            self._is_known |= self._exchange.has_answered

    async def _kept(
        self,
        keep: CleanedRequest | None,
        sent: Request,
        answered: WireAnswer,
        spans: Sequence[SpanRecord] | None = None,
    ) -> ServiceReply:
        """Return the reply. It is recorded before, where it is to be."""
        # An answer without the memory of its session is not kept.
        session = sent.talk.after(answered.document, is_new=True) if sent.talk else None
        if keep is not None and self._playback is not None:
            said = json.dumps(sent.talk.session) if sent.talk and sent.talk.session is not None else ""
            # Before the answer: a recording is there when its answer is.
            await asyncio.to_thread(keep_spans, self._playback.cassettes.file(keep), spans, self._spec.name)
            await asyncio.to_thread(self._playback.save, keep, replace(answered.recorded, session=said))
        return _reply(answered, sent, session)

    def _document(self, heard: ResponseDecoder, talk: SessionTurn | None = None) -> Any:
        """Return the JSON of an answer.

        Raises:
            SessionLostError: the service has lost the conversation.
            ModelCallError: the service reports another error.
            ModelOutputError: the response is not an answer.
        """
        document = heard.document()
        if self._spec.kind == "mcp":
            document = tool_content(document, self._spec.name)
        # A service may repeat its key in an answer. It is hidden here, as in the recording.
        document = self._cleaner.value(document) if self._secrets else document
        if talk is not None:
            talk.check_not_lost(document)
        self._reader.refuse_error(document)
        return document

    def _given_up(self, failure: PassingError, said: str) -> RagHarnessError:
        if is_nobody_there(failure.cause) and not self._is_known:
            return CriticalError(
                f"Nothing answers at {self._spec.url}, the url of endpoint {self._spec.name!r}. {said} Start the "
                f"service, or mend the url in {self._spec.where}."
            )
        return ModelCallError(f"{self._spec.name}: {said}")

    async def aclose(self) -> None:
        """Close the connections. A later call, perhaps on another loop, opens new ones."""
        if self._exchange is not None:
            await self._exchange.aclose()
            self._exchange = None
        if self._listening is not None:
            await asyncio.to_thread(self._listening.close)


def _reply(answered: WireAnswer, sent: Request, session: SessionId | None) -> ServiceReply:
    recorded = answered.recorded
    times = recorded.total_ms, recorded.ttft_ms
    return ServiceReply(answered.document, recorded.status, *times, sent=sent, session=session)


def _is_of_another_session(request: Request, found: Recorded) -> bool:
    """Return whether a later turn could not go on from a recording: the service has answered it in another session."""
    if request.talk is None:
        return False
    if session_of_turn.get() == "restarted":
        return True
    return not request.talk.is_first and found.session != json.dumps(request.talk.session)
