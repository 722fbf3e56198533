"""Chat completions: replies as they come, replayed, or computed in this process."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.json_text import read_json
from rag_harness.core.types import Completion, Usage
from rag_harness.models.calls import (
    LONGEST_ANSWER,
    CallListener,
    StreamedToolCalls,
    answer_too_long,
    listening,
    offered,
)
from rag_harness.models.prompts import split_reply
from rag_harness.models.recording.cassette_file import Recorded
from rag_harness.models.recording.playback import Playback

if TYPE_CHECKING:
    pass


_END = b"[DONE]"


class Events:
    """Cuts a stream into the data of its events (HTML Standard, "Server-sent events"). Half an event is dropped."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._data: list[bytes] = []

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the data of each event that ``part`` ends."""
        self._rest.append(part)
        if b"\n" not in part:
            return  # joined once at its end, so that a line of a thousand parts is not copied a thousand times
        lines = b"".join(self._rest).splitlines(keepends=True)
        self._rest = [lines.pop()] if not lines[-1].endswith(b"\n") else []
        for line in lines:
            name, _, value = line.rstrip(b"\r\n").partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif self._data and not line.strip(b"\r\n"):
                yield b"\n".join(self._data)
                self._data = []


class StreamError(Exception):
    """The server sent an error in the middle of a stream; ``body`` is the error."""

    def __init__(self, body: Any) -> None:
        said = body.get("message") if isinstance(body, dict) else body
        super().__init__(str(said or "An error occurred during streaming"))
        self.body = body


@dataclass
class StreamedCompletion:
    """The answer made from the events of a stream; ``first`` is the time of the first token, on perf_counter's clock.

    ``listener`` gets the text while it arrives. An answer of more than ``longest`` characters is cut off.
    """

    model: str
    longest: int = LONGEST_ANSWER
    first: float | None = None
    usage: Usage | None = None
    end: str = ""
    finish_reason: str = ""
    is_done: bool = False
    listener: CallListener | None = field(default_factory=listening.get)
    first_token: dict[str, float] = field(default_factory=dict)
    calls: StreamedToolCalls = field(default_factory=StreamedToolCalls)
    _thought: list[str] = field(default_factory=list)
    _text: list[str] = field(default_factory=list)
    _length: int = 0
    _events: Events = field(default_factory=Events)

    def __post_init__(self) -> None:
        if self.listener is not None:
            self.listener.begins()

    def add(self, part: bytes) -> None:
        """Add a part of the stream.

        Raises:
            ModelOutputError: the answer is too long.
            StreamError: the server reports an error.
            ValueError: an event is not an event of a completion.
        """
        for data in self._events.feed(part):
            if self.is_done or data.startswith(_END):
                self.is_done = True
                return
            self._take(read_json(data))

    def _take(self, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            raise ValueError(f"an event of the stream is not an object: {chunk!r:.80}")
        if chunk.get("error"):
            raise StreamError(chunk["error"])
        self.model = chunk.get("model") or self.model
        choices = chunk.get("choices") or ()
        if usage := chunk.get("usage"):
            self.usage = _usage(usage)
            # Some servers state the usage so far in each event: only one without a choice is the last.
            self.end = self.end or ("" if choices else "usage")
        for choice in choices[:1]:
            self.finish_reason = str(choice.get("finish_reason") or self.finish_reason)
            self.end = self.finish_reason or self.end
            if self.finish_reason == "error":
                raise StreamError(choice.get("error") or {"message": "the server ended its answer with an error"})
            if not self.first_token:
                self.first_token = _first_token(choice.get("logprobs") or {})
            delta = choice.get("delta") or {}
            self._think(delta.get("reasoning_content") or delta.get("reasoning"))
            if pieces := delta.get("tool_calls"):
                self.first = self.first or perf_counter()
                self.calls.add(pieces)
                if self.calls.length > self.longest:
                    raise answer_too_long(self.model, "", self.longest)
            if content := _text_of(delta.get("content") or delta.get("refusal")):
                self.first = self.first or perf_counter()
                self._text.append(content)
                self._length += len(content)
                if self._length > self.longest:
                    raise answer_too_long(self.model, "".join(self._text), self.longest)
                if self.listener is not None:
                    self.listener.hears(content)

    def text(self) -> str:
        """Return the whole answer; an answer that calls tools may have no text.

        Raises:
            ConnectionError: the stream is incomplete.
            ModelOutputError: the answer has no text.
        """
        if not self.end and not self.is_done:
            # A connection that closes early looks like the end of a stream. Half an answer must not count as complete.
            raise ConnectionError("the stream broke off before its end")
        if self.finish_reason == "content_filter":
            said = "".join(self._text)
            raise ModelOutputError(f"{self.model}: the provider's content filter stopped the answer.", said)
        thought, answer = split_reply("".join(self._text))
        if thought:
            self._thought.append(thought)
        if not answer and not (offered.get() and self.calls.calls()):
            raise ModelOutputError(self._without_text())
        return answer

    @property
    def reasoning(self) -> str:
        """The model's reasoning, as far as the stream has it."""
        return "".join(self._thought)

    def take_whole(self, reply: Mapping[str, Any]) -> None:
        """Take the reply of a server that does not stream: the message is one piece.

        Raises:
            ModelOutputError, StreamError: as for a stream.
        """
        choices = [
            {**choice, "delta": _numbered(choice.get("message") or choice.get("delta") or {})}
            for choice in reply["choices"]
            if isinstance(choice, dict)
        ]
        self._take({**reply, "choices": choices})
        self.is_done = True

    def _think(self, said: Any) -> None:
        if isinstance(said, str) and said:
            self._thought.append(said)
            self._length += len(said)
            if self._length > self.longest:
                raise answer_too_long(self.model, "", self.longest)

    def _without_text(self) -> str:
        spent = f" after {self.usage.completion_tokens} tokens" if self.usage and self.usage.completion_tokens else ""
        if self.finish_reason == "length":
            thinks = "it thought for all of them: " if self._thought else ""
            return (
                f"{self.model} reached its limit{spent} without any text (finish_reason 'length'); {thinks}allow more "
                "with max_tokens of its role, or have it think less."
            )
        return f"{self.model} answered without any text{spent} (finish_reason {self.end or 'none'!r})."


def _usage(said: Mapping[str, Any]) -> Usage:
    """Return the tokens of a call, and its price where the provider says it."""
    prompt, completion = (said.get(f"{name}_tokens_details") or {} for name in ("prompt", "completion"))
    usd = said.get("cost")
    is_stated = isinstance(usd, (int, float)) and not isinstance(usd, bool) and usd >= 0
    return Usage(
        said.get("prompt_tokens") or 0,
        said.get("completion_tokens") or 0,
        1,
        prompt.get("cached_tokens") or said.get("prompt_cache_hit_tokens") or 0,
        completion.get("reasoning_tokens") or 0,
        float(usd) if is_stated and usd is not None else None,
    )


def _text_of(content: Any) -> str:
    """Return the text of a piece: text itself, or a list of parts."""
    if isinstance(content, list):
        return "".join(_text_of(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _numbered(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message whose calls of tools have their places, as the pieces of a stream have."""
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return message
    return {**message, "tool_calls": [{"index": place, **call} for place, call in enumerate(calls)]}


def _first_token(logprobs: Any) -> dict[str, float]:
    """Return the log-probabilities of the first token that is not blank. Of equal tokens the last counts."""
    for said in logprobs.get("content") or ():
        if str(said.get("token", "")).strip():
            return {str(each["token"]): float(each["logprob"]) for each in said.get("top_logprobs") or ()}
    return {}


@dataclass(frozen=True)
class Replayed:
    """Looks up a request by the body that the SDK would send to ``url``. Answers have at most ``longest`` characters.

    A request that is not found here may still be found through the SDK, which knows all headers.
    """

    playback: Playback
    url: str
    longest: int = LONGEST_ANSWER

    def find(self, request: Mapping[str, Any]) -> Completion | None:
        """Return the recorded answer. None without one, or where this module cannot read it.

        Raises:
            DataError: the recording is damaged; names the file.
            ModelOutputError: the recorded answer has no text, or is too long.
        """
        found = self.playback.find(self.playback.cassettes.asked("POST", self.url, request_content(request)))
        return None if found is None else completion_of(found, str(request["model"]), self.longest)


def completion_of(found: Recorded, model: str, longest: int = LONGEST_ANSWER) -> Completion | None:
    """Return a recorded stream of the chat completions API, as through the SDK. None for any other recording."""
    if found.status != 200 or "json" in found.content_type:
        return None
    said = StreamedCompletion(model, longest)
    try:
        said.add(found.body)
        text = said.text()
    except (ValueError, TypeError, AttributeError, ConnectionError, StreamError):
        return None
    usage = said.usage or Usage(calls=1)
    return Completion(
        text,
        said.model,
        usage,
        found.total_ms,
        found.ttft_ms,
        recorded=True,
        recorded_at=found.recorded_at,
        finish_reason=said.finish_reason,
        first_token=said.first_token,
        tool_calls=said.calls.calls(),
        reasoning=said.reasoning,
    )


def request_content(request: Mapping[str, Any]) -> bytes:
    """Return a request's body as the SDK writes it. A lone surrogate is written as a JSON escape."""
    return json.dumps(request, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


# Answers of the baseline reader in this process, without the SDK and without an HTTP library.


@dataclass(frozen=True)
class Computed:
    """Answers a request as the SDK would send it. Answers have at most ``longest`` characters."""

    longest: int = LONGEST_ANSWER

    def answer(self, request: Mapping[str, Any]) -> Completion | None:
        """Return the reader's answer. None where it refuses the request: the SDK then raises the reason.

        Raises:
            ModelOutputError: the answer has no text, or is too long.
        """
        from rag_harness.models.reader import RequestError
        from rag_harness.models.reader import answer_request as answer
        from rag_harness.models.reader import completion_events as events

        started = perf_counter()
        try:
            reply = answer(request_content(request))
        except RequestError:
            return None
        said = StreamedCompletion(str(request["model"]), self.longest)
        for event in events(reply):
            said.add(event.encode())
        text, total = said.text(), (perf_counter() - started) * 1000
        usage = said.usage or Usage(calls=1)
        return Completion(text, said.model, usage, total, total, finish_reason=said.finish_reason)
