"""Any OpenAI-compatible endpoint, through the openai SDK: OpenRouter by default, or the embedded reader in process."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rag_harness.deadline import Deadline
from rag_harness.errors import CriticalError, DeadlineError, ModelCallError, RagHarnessError
from rag_harness.models.call import CALL, Call
from rag_harness.models.chat.failures import PassingError, may_pass, refusals, refuse_json, transport_errors
from rag_harness.models.chat.streamed import Streamed
from rag_harness.models.limits import LONGEST_WAIT
from rag_harness.protocols import Parts
from rag_harness.recording.cassettes import TOTAL, TTFT
from rag_harness.registry import model_name
from rag_harness.settings.profiles import EMBEDDED_URL
from rag_harness.types import Completion, Message, Usage

if TYPE_CHECKING:
    from openai import APIError, AsyncOpenAI

    from rag_harness.settings import Settings

RETRIES = 3
_NO_KEY = "none"
_HALTING = {"401", "402", "403", "404", "model_not_found", "invalid_api_key", "insufficient_quota"}
"""A rejected key, no credit, no permission, no such model: no later call can succeed either."""
_NO_SUCH_MODEL = "not a valid model"
"""How OpenRouter says so, with status 400."""


@dataclass(frozen=True)
class Sampling:
    """What is sent with every request."""

    temperature: float = 0.0
    seed: int | None = None
    max_tokens: int = 1024


class OpenAIChat:
    """Streams completions, so that the time to first token is known.

    Args:
        client: the SDK's client, with its own retries off: they would hide what was waited for.
        model: name as the server knows it.
        sampling: temperature, seed, longest answer.
        timeout: seconds that one call may take, from its turn to its last token.
        wait: sleeps; replaced in tests.
    """

    def __init__(
        self,
        client: AsyncOpenAI,
        model: str,
        sampling: Sampling | None = None,
        timeout: float = 60.0,
        wait: Any = asyncio.sleep,
    ) -> None:
        self.model, self.timeout = model, timeout
        self._client, self._sampling, self._wait = client, sampling or Sampling(), wait
        self._has_schemas = True

    async def complete(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None = None
    ) -> Completion:
        """Return the model's answer.

        Raises:
            BudgetError: the call could pass the budget.
            CriticalError: the key, the credit or the model is refused.
            ModelCallError: the call failed for good, after 3 retries with 1, 2 and 4 s between them.
            ModelOutputError: the server answered without any text.
        """
        waited = 0.0
        for retry in range(RETRIES + 1):
            time = Deadline(self.timeout, f"no whole answer within {self.timeout:g} s. Allow more: --rag-timeout")
            try:
                completion = await self._once(messages, response_format, time)
                return replace(completion, retries=retry, waited_ms=(waited + time.waited) * 1000)
            except PassingError as failure:
                pause = failure.pause(retry)
                if retry == RETRIES or pause > LONGEST_WAIT:
                    raise ModelCallError(f"{self.model}: {failure.explain(retry, pause)}") from failure.cause
            waited += time.waited + pause
            await self._wait(pause)
        raise AssertionError("unreachable")

    async def _once(
        self, messages: Sequence[Message], response_format: Mapping[str, Any] | None, time: Deadline
    ) -> Completion:
        from openai import APIError

        schema = response_format if self._has_schemas else None
        try:
            return await time.bound(self._stream(messages, schema))
        except DeadlineError as error:
            raise PassingError(error) from error
        except APIError as error:
            if isinstance(error.__cause__, RagHarnessError):
                # A recording that is missing or damaged: the SDK takes it for a broken connection.
                raise error.__cause__ from None
            self._hide_key(error)
            self._halt_if_hopeless(error)
            # Some models know no structured output; the prompt asks for the same JSON in words.
            if schema is not None and isinstance(error, refusals()) and "response_format" in str(error):
                self._has_schemas = False
                return await self._once(messages, None, time)
            if not may_pass(error):
                raise ModelCallError(f"{self.model}: the request was refused: {error}") from error
            raise PassingError(error) from error
        except transport_errors() as error:
            raise PassingError(error) from error

    async def _stream(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> Completion:
        from openai import AsyncStream
        from openai.types.chat import ChatCompletion, ChatCompletionChunk

        started, said = perf_counter(), Streamed(self.model)
        # What chat.completions.create does too, after it has walked through every field of the request: 1 ms a call.
        sent_to = self._client.post(
            "/chat/completions",
            body=self._request(messages, schema),
            cast_to=ChatCompletion,
            stream=True,
            stream_cls=AsyncStream[ChatCompletionChunk],
        )
        async with await sent_to as opened:
            stream: Any = opened
            call: Call | None = stream.response.extensions.get(CALL)
            await refuse_json(stream.response)
            async for chunk in stream:
                said.add(chunk)
                if call and said.usage:
                    call.settle(said.usage)
        text, replayed = said.text(), _recorded_times(stream.response)
        sent = call.started if call else started
        times = replayed or _times(sent, said.first or sent)
        return Completion(text, said.model, said.usage or Usage(calls=1), *times, recorded=replayed is not None)

    def _request(self, messages: Sequence[Message], schema: Mapping[str, Any] | None) -> dict[str, Any]:
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": each.role, "content": each.content} for each in messages],
            "temperature": self._sampling.temperature,
            "max_tokens": self._sampling.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._sampling.seed is not None:
            request["seed"] = self._sampling.seed
        if schema is not None:
            request["response_format"] = schema
        return request

    def _halt_if_hopeless(self, error: APIError) -> None:
        status = getattr(error, "status_code", None)
        if {str(status), str(error.code)} & _HALTING or _NO_SUCH_MODEL in error.message:
            raise CriticalError(
                f"The chat endpoint {self._client.base_url} refused {self.model!r} with {status or error.code}: "
                f"{error.message} Check the model's name, the key and its credit."
            ) from error

    def _hide_key(self, error: APIError) -> None:
        """Take the key out of what the server said: messages and tracebacks go into rows and logs."""
        key = str(self._client.api_key)
        if key and key != _NO_KEY:
            error.message = error.message.replace(key, "…")
            error.args = (str(error).replace(key, "…"),)

    async def aclose(self) -> None:
        """Close the client's connections."""
        await self._client.close()


def _times(started: float, first: float) -> tuple[float, float | None]:
    """Return total and time to first token in milliseconds."""
    return (perf_counter() - started) * 1000, (first - started) * 1000


def _recorded_times(response: Any) -> tuple[float, float | None] | None:
    """Return the times of the recorded call, where the response was replayed: replay's own speed is not the model's."""
    total, ttft = response.headers.get(TOTAL), response.headers.get(TTFT)
    return None if total is None else (float(total), float(ttft) if ttft else None)


def create(parts: Parts) -> OpenAIChat:
    """Return the chat model that the settings name, behind the recordings of its profile."""
    return chat_over(_transport(parts), parts.settings)


def chat_over(transport: Any, settings: Settings) -> OpenAIChat:
    """Return the chat model that the settings name, with ``transport`` below the SDK."""
    import httpx2
    from openai import AsyncOpenAI

    client = AsyncOpenAI(
        base_url="http://embedded/v1" if settings.chat_base_url == EMBEDDED_URL else settings.chat_base_url,
        api_key=settings.chat_key or _NO_KEY,
        timeout=None,  # OpenAIChat bounds the whole call, without the time in line
        max_retries=0,
        http_client=httpx2.AsyncClient(transport=transport),
    )
    sampling = Sampling(settings.temperature, settings.seed, settings.max_output_tokens)
    return OpenAIChat(client, model_name("chat", settings.chat_model), sampling, settings.timeout)


def _transport(parts: Parts) -> Any:
    """Return the way to the model that the mode allows: recorded answers first, unless everything is live."""
    from rag_harness.models.chat.recorded import RecordingTransport

    settings = parts.settings
    local = settings.chat_base_url == EMBEDDED_URL
    if settings.mode == "live":
        return _way_to_the_model(settings)
    may_call = settings.mode == "record" or (settings.mode == "auto" and local)
    return RecordingTransport(
        parts.cassettes,
        _way_to_the_model(settings) if may_call else None,
        keep=settings.mode == "record",
        ask_again=settings.rerecord and settings.mode == "record",
        refuse=f"Record it: --rag-profile={settings.profile} --rag-mode=record",
    )


def _way_to_the_model(settings: Settings) -> Any:
    import httpx2

    if settings.chat_base_url == EMBEDDED_URL:
        from rag_harness.reader import app

        return httpx2.ASGITransport(app=app)
    from rag_harness.models.metered import metered

    # The line bounds the calls in flight. httpx2 keeps 20 connections open, and would make the others anew each time.
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    return metered(httpx2.AsyncHTTPTransport(limits=limits), settings)
