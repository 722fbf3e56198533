"""Chat models of OpenAI-compatible endpoints, by the openai SDK, and the prediction of their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from rag_harness.core.concurrency import IMPORTING, Deadline
from rag_harness.core.errors import DeadlineError, ModelCallError, ModelOutputError, RagHarnessError
from rag_harness.core.files import json_digest
from rag_harness.core.log import log
from rag_harness.core.progress import uncollected
from rag_harness.core.protocols import ChatParts, KeyOwner
from rag_harness.core.registry import REVISIONS, model_name
from rag_harness.core.settings import Settings, access_of
from rag_harness.core.settings.profiles import EMBEDDED_URL
from rag_harness.core.settings.roles import RequestFields
from rag_harness.core.types import Completion, Message, Usage
from rag_harness.models.calls import (
    CALL,
    IS_OVER,
    LONGEST_ANSWER,
    MOST_ALTERNATIVES,
    Call,
    PassingError,
    alternatives,
    forbidden,
    hopeless,
    may_pass,
    offered,
    reply_in_json,
    retried,
    sdk_error,
    seed_shift,
    sent_message,
    stated_cost,
    transport_errors,
    upper_bound,
)
from rag_harness.models.completions import Computed, Replayed, StreamedCompletion, StreamError, request_content
from rag_harness.models.endpoints import is_simulated
from rag_harness.models.recording.cassettes import RECORDED_AT, TOTAL, TTFT, Cassettes
from rag_harness.models.recording.playback import Playback
from rag_harness.models.refused_parameters import FILE_NAME, MOST_REFUSALS, AskedWithout, refused_parameters, shaped

if TYPE_CHECKING:
    from openai import APIError, AsyncOpenAI


NO_KEY = "none"
_IN_PROCESS = "http://embedded/v1"


def _base_url(settings: Settings) -> str:
    return _IN_PROCESS if settings.chat_base_url == EMBEDDED_URL else settings.chat_base_url


def completions_url(settings: Settings) -> str:
    """Return the address of requests. Its path is part of the names of recordings."""
    return f"{_base_url(settings).rstrip('/')}/chat/completions"


def runs_here(settings: Settings) -> bool:
    """Return whether the baseline reader in this process answers. It needs no weights, so every mode may ask it."""
    return settings.chat_base_url == EMBEDDED_URL and not is_simulated(settings)


def playback_of(parts: ChatParts) -> Playback | None:
    """Return the playback of a run's recordings, or None where no recordings are used.

    The simulated model has none: it needs no weights and gives the same answers on every machine, so every mode may
    call it.

    Raises:
        DataError: the folder for new recordings cannot be written.
    """
    settings = parts.settings
    access, local = access_of(settings), runs_here(settings)
    if not access.reads_recordings or is_simulated(settings):
        return None
    return Playback(
        parts.cassettes,
        local or access.calls_network,
        access.records,
        ask_again=settings.rerecord and access.records,
        refuse="" if local else access.refusal(local=False, profile=settings.profile),
        version=REVISIONS["reader"] if local else "",
    )


def connect(parts: ChatParts, playback: Playback | None) -> AsyncOpenAI:
    """Return the SDK's client over the transports for the mode."""
    with IMPORTING, uncollected():  # the SDK makes 100,000 objects that stay; collecting them is a fifth of its import
        import httpx2
        from openai import AsyncOpenAI

    settings = parts.settings
    return AsyncOpenAI(
        base_url=_base_url(settings),
        api_key=settings.chat_key or NO_KEY,
        timeout=None,  # OpenAIChat limits the whole call, without the waiting
        max_retries=0,  # the SDK's own retries would hide the waiting
        http_client=httpx2.AsyncClient(transport=_transport(parts, playback)),
    )


def _transport(parts: ChatParts, playback: Playback | None) -> Any:
    if playback is None:
        return _to_the_model(parts)
    from rag_harness.models.recording.transport import RecordingTransport

    return RecordingTransport(playback, _to_the_model(parts) if playback.may_call else None)


def _to_the_model(parts: ChatParts) -> Any:
    url = parts.settings.chat_base_url
    if url == EMBEDDED_URL:
        import httpx2

        return httpx2.ASGITransport(app=_app(parts.settings))
    from rag_harness.models.http_transport import AiohttpTransport, MeteredTransport

    return MeteredTransport(AiohttpTransport(), parts.meter.limiter(url), parts.meter.money)


def _app(settings: Settings) -> Any:
    if not is_simulated(settings):
        from rag_harness.models.reader import app

        return app
    from rag_harness.data.source_records import read_map
    from rag_harness.models.simulated_model import SimulatedApp, SimulatedModel

    return SimulatedApp(SimulatedModel.reading(settings.queries_path, read_map(settings.map, "rag_map")))


_NEUTRAL = "Reply with the word OK."
_LONGEST_END = 0.1
"""Seconds that a stream may stay open after its last event; as in the SDK."""


@dataclass(frozen=True)
class SentParameters:
    """The sampling options of every request."""

    temperature: float = 0.0
    seed: int | None = None
    max_tokens: int = 1024


_OF_ANSWERS = KeyOwner()


Find: TypeAlias = Callable[[Mapping[str, Any]], Completion | None]


def _nothing(_request: Mapping[str, Any]) -> None:
    """Return None: the model is called."""


class OpenAIChat:
    """Streams completions, so that the time to first token is known.

    Args:
        connect: makes the SDK's client when an answer is not recorded. Its import takes 0.8 s.
        model: the server's name of the model.
        sampling: temperature, seed, longest answer.
        timeout: seconds that one call may take, from its turn to its last token.
        recorded: looks up the recording of a request before connecting; returns None without one.
        wait: sleeps; replaced in tests.
        longest: most characters of an answer. A longer one is cut off and is a failure.

    Attributes:
        key: its role, and the place of this role's key.
        fields: the fields that the profile adds to its requests or removes from them.
        computed: answers without connecting, where no recording exists; returns None where it cannot.
        without: the fields that are left out because the model or its server refuses them.
    """

    def __init__(
        self,
        connect: Callable[[], AsyncOpenAI],
        model: str,
        sampling: SentParameters | None = None,
        timeout: float = 60.0,
        recorded: Find = _nothing,
        wait: Any = asyncio.sleep,
        longest: int = LONGEST_ANSWER,
    ) -> None:
        self.key: KeyOwner = _OF_ANSWERS
        self.computed: Find = _nothing
        self.fields: RequestFields = RequestFields()
        self.model, self.timeout, self.longest = model, timeout, longest
        self._connect, self._sampling, self._wait = connect, sampling or SentParameters(), wait
        self._recorded = recorded
        self.without: AskedWithout = AskedWithout(model)
        self._is_welcome: bool | None = None

    @cached_property
    def _client(self) -> AsyncOpenAI:
        return self._connect()

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer.

        Raises:
            BudgetError: the call could pass the budget.
            CriticalError: the key, the credit or the model is refused.
            ModelCallError: the call failed for good, after 3 retries with 1, 2 and 4 s between them, or as the
                caller's ``Patience`` says.
            ModelOutputError: the answer has no text, or too much.
        """
        request = self._request(messages, response_format)
        return self._replayed(request) or self.computed(request) or await self._called(request)

    def _replayed(self, request: Mapping[str, Any]) -> Completion | None:
        """Return the recorded answer. A model without structured output was asked again, without the schema; one that
        states no probabilities, without these."""
        if self._recorded is _nothing:
            return None
        without = self.without.names
        asked = shaped(request, without)
        if found := self._recorded(asked):
            return replace(found, asked_without=tuple(sorted(without)))
        # Recordings of releases that did not keep what a model was asked without, or did not bound lists.
        for more in ({"list_bounds"}, {"response_format"}, {"response_format", "logprobs"}):
            older = shaped(request, without | more)
            if older != asked and (found := self._recorded(older)):
                return found
        return None

    async def _called(self, request: Mapping[str, Any]) -> Completion:
        _ = self._client  # made now, so that no call's time includes the SDK's import
        lost: list[Usage] = []
        late = f"no whole answer within {self.timeout:g} s. Allow more: --rag-timeout"
        completion, retries, waited_ms = await retried(
            lambda time: self._once(request, time, lost),
            lambda: Deadline(self.timeout, late),
            lambda _, why: ModelCallError(f"{self.model}: {why}"),
            self._wait,
        )
        usage = sum(lost, completion.usage)
        return replace(completion, usage=usage, retries=retries, waited_ms=waited_ms)

    async def _once(self, asked: Mapping[str, Any], time: Deadline, lost: list[Usage]) -> Completion:
        """Ask once, and again where the server refuses parameters; ``lost`` gets the tokens of failed replies."""
        from openai import APIError

        for refusals in range(MOST_REFUSALS + 1):
            without = self.without.names
            request = shaped(asked, without)
            try:
                found = await time.bound(self._stream(request, lost))
            except DeadlineError as error:
                raise PassingError(error) from error
            except APIError as error:
                if isinstance(error.__cause__, RagHarnessError):
                    # A missing or damaged recording: the SDK has wrapped it as a broken connection.
                    raise error.__cause__ from None
                self._hide_key(error)
                refused = refused_parameters(error, request)
                if refused and refusals < MOST_REFUSALS and self.without.learn(refused, without, error.message):
                    continue
                raise await self._failure(error) from error
            except transport_errors() as error:
                raise PassingError(error) from error
            self._is_welcome = True
            self.without.answered()
            return replace(found, asked_without=tuple(sorted(without)))
        raise AssertionError("unreachable")

    async def _failure(self, error: APIError) -> Exception:
        """Return the error of a call that the server has refused or failed."""
        if forbidden(error) and await self._welcomes():
            return ModelCallError(f"{self.model}: this question was refused: {error}")
        if halting := hopeless(error, self.model, str(self._client.base_url), self.key):
            return halting
        return (
            PassingError(error)
            if may_pass(error)
            else ModelCallError(f"{self.model}: the request was refused: {error}")
        )

    async def _welcomes(self) -> bool:
        """Return whether the server answers a neutral question: its 403 was then about one question alone."""
        if self._is_welcome is None:
            neutral = self._request([Message("user", _NEUTRAL)], None, 0)
            try:
                await asyncio.wait_for(self._stream(shaped(neutral, self.without.names), []), self.timeout)
                self._is_welcome = True
            except Exception as error:
                log.info("%s does not answer a neutral question, either: %s", self.model, error)
                self._is_welcome = False
        return self._is_welcome

    async def _stream(self, request: dict[str, Any], lost: list[Usage]) -> Completion:
        started, said = perf_counter(), StreamedCompletion(self.model, self.longest)
        response = await self._sent(request)
        call: Call | None = response.extensions.get(CALL)
        try:
            whole = await reply_in_json(response)
            if whole is None:
                await _read(response, said, call)
            else:
                said.take_whole(whole)
                _settle(call, said)
        except StreamError as error:
            lost += filter(None, [said.usage])
            raise sdk_error(str(error), response, error.body) from error
        except transport_errors():
            lost += filter(None, [said.usage])
            raise
        finally:
            await response.aclose()
        text, failed = "", None
        try:
            text = said.text()
        except ConnectionError:
            lost += filter(None, [said.usage])
            raise
        except ModelOutputError as error:
            failed = error
        replayed = _recorded_times(response)
        sent = call.started if call else started
        times = replayed or _times(sent, said.first or sent)
        usage, is_replayed, headers = said.usage or Usage(calls=1), replayed is not None, response.headers
        usage = usage if usage.usd is not None else replace(usage, usd=stated_cost(headers))
        when = headers.get(RECORDED_AT, "") if is_replayed else ""
        found = Completion(text, said.model, usage, *times, recorded=is_replayed, recorded_at=when)
        found = replace(
            found,
            finish_reason=said.finish_reason,
            first_token=said.first_token,
            tool_calls=said.calls.calls(),
            reasoning=said.reasoning,
        )
        if failed is not None:
            failed.said = replace(found, usage=sum(lost, usage))
            raise failed
        return found

    async def _sent(self, request: dict[str, Any]) -> Any:
        """Return the raw response. The SDK's objects for each chunk would take 0.6 ms a call."""
        from httpx2 import Response

        # chat.completions.create does the same, but first checks every field of the request: 1 ms a call.
        client: Any = self._client
        return await client.post("/chat/completions", body=request, cast_to=Response, stream=True)

    def _request(
        self, messages: Sequence[Message], schema: Mapping[str, Any] | None, most: int = MOST_ALTERNATIVES
    ) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [sent_message(message) for message in messages],
            "temperature": self._sampling.temperature,
            "max_tokens": self._sampling.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._sampling.seed is not None:
            request["seed"] = self._sampling.seed + seed_shift.get()
        if schema is not None:
            request["response_format"] = schema
        if tools := offered.get():
            request["tools"] = list(tools)
        if wanted := min(alternatives.get(), most):
            request |= {"logprobs": True, "top_logprobs": wanted}
        return self.fields.applied(request)

    def _hide_key(self, error: APIError) -> None:
        """Remove the key from a server's message. Messages and tracebacks go into rows and logs."""
        key = str(self._client.api_key)
        if key and key != NO_KEY:
            error.message = error.message.replace(key, "…")
            error.args = (str(error).replace(key, "…"),)

    async def aclose(self) -> None:
        """Close the client's connections, if there are any."""
        if "_client" in vars(self):
            await self._client.close()


async def _read(response: Any, said: StreamedCompletion, call: Call | None) -> None:
    parts = response.aiter_bytes()
    async for part in parts:
        said.add(part)
        _settle(call, said)
        if said.is_done:
            # A connection is reused only after reading to its end, but some servers leave the stream open.
            with suppress(asyncio.TimeoutError, *transport_errors()):
                await _end_of(response, parts)
            return


async def _end_of(response: Any, parts: Any) -> None:
    """Read to the end. Where that has come already, nothing waits, and the answer gets to the disk so much sooner."""
    is_over: Callable[[], bool] = response.extensions.get(IS_OVER, lambda: False)
    await (_rest_of(parts) if is_over() else asyncio.wait_for(_rest_of(parts), _LONGEST_END))


def _settle(call: Call | None, said: StreamedCompletion) -> None:
    if call and said.usage:
        call.settle(said.usage)


async def _rest_of(parts: Any) -> None:
    async for _ in parts:
        pass


def _times(started: float, first: float) -> tuple[float, float | None]:
    """Return total and time to first token in milliseconds."""
    return (perf_counter() - started) * 1000, (first - started) * 1000


def _recorded_times(response: Any) -> tuple[float, float | None] | None:
    """Return the times of the recorded call for a replayed response. The speed of a replay is not the model's."""
    total, ttft = response.headers.get(TOTAL), response.headers.get(TTFT)
    return None if total is None else (float(total), float(ttft) if ttft else None)


def create(parts: ChatParts) -> OpenAIChat:
    """Return the chat model of the settings, with the recordings of its profile."""
    playback, settings = playback_of(parts), parts.settings
    find = Replayed(playback, completions_url(settings), settings.max_answer).find if playback else _nothing
    # What is recorded has the times of a call, so a run that records makes one.
    computes = runs_here(settings) and not access_of(settings).records
    compute = Computed(settings.max_answer).answer if computes else _nothing
    chat = chat_of(settings, lambda: connect(parts, playback), find, compute, parts.key_owner)
    if not runs_here(settings):
        chat.without = _asked_without(chat, settings, playback)
    return chat


def _asked_without(chat: OpenAIChat, settings: Settings, playback: Playback | None) -> AskedWithout:
    """Return what the model is asked without: as its recordings and the cache say, and kept there."""
    url = completions_url(settings)
    cached = settings.path(settings.cache_dir) / "asked_without" / f"{json_digest([url, chat.model])[:16]}.json"
    if playback is None:
        return AskedWithout(chat.model, [cached], cached)
    body = request_content({"model": chat.model})
    recorded = playback.cassettes.folder / playback.cassettes.asked("POST", url, body).folder / FILE_NAME
    if not playback.may_call:
        return AskedWithout(chat.model, [recorded])
    return AskedWithout(chat.model, [recorded, cached], recorded if playback.keep else cached)


def chat_of(
    settings: Settings,
    connect: Callable[[], AsyncOpenAI],
    recorded: Find = _nothing,
    computed: Find = _nothing,
    key: KeyOwner = _OF_ANSWERS,
) -> OpenAIChat:
    """Return the chat model of the settings, with a given client."""
    sampling = SentParameters(settings.temperature, settings.seed, settings.max_output_tokens)
    model = model_name("chat", settings.chat_model)
    chat = OpenAIChat(connect, model, sampling, settings.timeout, recorded, longest=settings.max_answer)
    chat.key, chat.computed, chat.fields = key, computed, RequestFields.read(settings.chat_request)
    return chat


class NotSentError(RagHarnessError):
    """The request was counted and not sent, so no answer exists."""


@dataclass
class Expected:
    """Requests by the file of their recording. ``usage`` is the most that the requests to be sent can use."""

    recorded: set[Path] = field(default_factory=set)
    to_send: set[Path] = field(default_factory=set)
    usage: Usage = Usage()


def _never() -> NoReturn:
    raise AssertionError("nothing is sent while requests are counted")


def counting_chat(settings: Settings, cassettes: Cassettes, expected: Expected) -> OpenAIChat:
    """Return a chat model that adds its requests to ``expected`` and raises NotSentError."""

    def count(request: Mapping[str, Any]) -> None:
        if is_simulated(settings):
            raise NotSentError("The simulated model computes its answers, which are not recorded.")
        content = request_content(request)
        asked = cassettes.asked("POST", completions_url(settings), content)
        file = cassettes.file(asked)
        if cassettes.has(asked) and not settings.rerecord:
            expected.recorded.add(file)
        elif file not in expected.to_send:
            expected.to_send.add(file)
            expected.usage += upper_bound(content, request)
        raise NotSentError(asked.digest)

    return chat_of(settings, _never, count)
