"""Parser for streamed completions: server-sent events, merged into one answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from rag_harness.errors import ModelOutputError
from rag_harness.files.json_text import read_json
from rag_harness.models.answer_length import LONGEST_ANSWER, answer_too_long
from rag_harness.models.heard import CallListener, listening
from rag_harness.models.offered_tools import HeardCalls, offered
from rag_harness.models.reasoning import parted
from rag_harness.types import Usage

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
    calls: HeardCalls = field(default_factory=HeardCalls)
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
            ValueError: an event is no event of a completion.
        """
        for data in self._events.feed(part):
            if self.is_done or data.startswith(_END):
                self.is_done = True
                return
            self._take(read_json(data))

    def _take(self, chunk: Any) -> None:
        if not isinstance(chunk, dict):
            raise ValueError(f"an event of the stream is no object: {chunk!r:.80}")
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
        thought, answer = parted("".join(self._text))
        if thought:
            self._thought.append(thought)
        if not answer and not (offered.get() and self.calls.calls()):
            raise ModelOutputError(self._without_text())
        return answer

    @property
    def reasoning(self) -> str:
        """What the model thought, as far as the stream tells."""
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
    """Return the log-probabilities of the first token that is no blank; of equal ones the last counts."""
    for said in logprobs.get("content") or ():
        if str(said.get("token", "")).strip():
            return {str(each["token"]): float(each["logprob"]) for each in said.get("top_logprobs") or ()}
    return {}
