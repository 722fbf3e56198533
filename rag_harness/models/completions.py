"""Chat completions: parameters that a model or its server refuses, and replies that are streamed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rag_harness.core.errors import ModelOutputError
from rag_harness.core.files import regular_bytes, write_atomically
from rag_harness.core.json_text import read_json
from rag_harness.core.log import log
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
    from openai import APIError


Request = dict[str, Any]
MOST_REFUSALS = 6
"""Most times that one call is asked again for its parameters."""

_REASONING = re.compile(r"(?:o[1-9](?:-|$)|gpt-5)")
"""Models of OpenAI that reason, as OpenAI, Azure and OpenRouter call them."""
_FORBIDDEN, _NOT_FOUND = 403, 404
_REFUSES = (400, _FORBIDDEN, _NOT_FOUND, 422)
_REFUSAL = re.compile(
    r"unsupported|not supported|n[o']t support|unrecogni[sz]ed|unknown|unexpected|not (?:permitted|allowed|available|"
    r"compatible|implemented|recogni[sz]ed)|extra (?:inputs|fields)|additional propert|invalid|must be|only |"
    r"deprecated|incompatible|cannot|no endpoints|without",
    re.IGNORECASE,
)
_BOUNDS = re.compile(r"(?:min|max)items")
_FORMAT = re.compile(r"response[ _]?format|json[_ ]?(?:schema|object|mode)|structured")
_STREAM = re.compile(r"(?<![a-z_])stream(?:ing)?(?![a-z_])")
_INSTRUCTIONS = re.compile(r"(?:system|developer)[ _](?:message|prompt|instruction|role)")
_TOO_MUCH = re.compile(
    r"too (?:large|long|many|high|big)|context[ _](?:length|window)|at most|exceed|above[ _]max|below[ _]min|less than|"
    r"greater than|between|out of range",
    re.IGNORECASE,
)
"""The parameter is taken, and its value is not."""


def _completion_tokens(request: Request) -> None:
    if "max_tokens" in request:
        request["max_completion_tokens"] = request.pop("max_tokens")


def _object_alone(request: Request) -> None:
    if request.get("response_format", {}).get("type") == "json_schema":
        request["response_format"] = {"type": "json_object"}


def _no_list_bounds(request: Request) -> None:
    if "response_format" in request:
        request["response_format"] = _unbounded(request["response_format"])


def _unbounded(schema: Any) -> Any:
    """Return a schema whose lists have no lengths."""
    if isinstance(schema, Mapping):
        return {name: _unbounded(each) for name, each in schema.items() if name not in ("minItems", "maxItems")}
    return schema


def _no_stream(request: Request) -> None:
    request.pop("stream_options", None)
    request.pop("stream", None)


def _no_probabilities(request: Request) -> None:
    request.pop("logprobs", None)
    request.pop("top_logprobs", None)


def _developer(request: Request) -> None:
    request["messages"] = [
        {**each, "role": "developer"} if each["role"] == "system" else each for each in request["messages"]
    ]


def _user(request: Request) -> None:
    """Put the instructions before the first question: two messages of a user in a row are refused as well."""
    told = [each["content"] for each in request["messages"] if each["role"] == "developer"]
    others = [each for each in request["messages"] if each["role"] != "developer"]
    place = next((at for at, each in enumerate(others) if each["role"] == "user"), None)
    if place is None:
        request["messages"] = [*({"role": "user", "content": text} for text in told), *others]
        return
    asked = {**others[place], "content": "\n\n".join([*told, others[place]["content"]])}
    request["messages"] = [*others[:place], asked, *others[place + 1 :]]


def _dropping(name: str) -> Callable[[Request], None]:
    return lambda request: request.pop(name, None)


_CHANGES: Mapping[str, Callable[[Request], None]] = {
    "max_tokens": _completion_tokens,
    "max_completion_tokens": _dropping("max_completion_tokens"),
    "list_bounds": _no_list_bounds,
    "json_schema": _object_alone,
    "response_format": _dropping("response_format"),
    "system": _developer,
    "developer": _user,
    "stream": _no_stream,
    "logprobs": _no_probabilities,
    **{name: _dropping(name) for name in ("temperature", "seed", "stream_options", "reasoning_effort")},
}
"""What a request without a parameter is made of, in the order in which that is done."""


_KEPT = frozenset(("model", "messages", "tools"))
"""The prompt, which is always sent."""


def known_without(model: str) -> frozenset[str]:
    """Return the parameters that a model is known not to take, by its name."""
    name = model.rpartition("/")[2]
    reasons = _REASONING.match(name) and "-chat" not in name
    return frozenset(("max_tokens", "temperature")) if reasons else frozenset()


def shaped(request: Mapping[str, Any], without: frozenset[str]) -> Request:
    """Return a request without parameters: ``max_tokens`` is asked as ``max_completion_tokens``, and so on."""
    made = {name: value for name, value in request.items() if name not in without - _CHANGES.keys() - _KEPT}
    for name, change in _CHANGES.items():
        if name in without:
            change(made)
    return made


def refused_parameters(error: APIError, request: Mapping[str, Any]) -> frozenset[str]:
    """Return the fields that a refusal of ``request`` names; empty where it is about something else."""
    status, said = getattr(error, "status_code", None), _said(error)
    if status not in _REFUSES or _TOO_MUCH.search(said):
        return frozenset()
    if status in (_FORBIDDEN, _NOT_FOUND) and not _REFUSAL.search(said):
        return frozenset()  # the key, the model or the address is refused
    param = str(getattr(error, "param", None) or "")
    return _named(param, said, request) or _named(said, said, request)


def _said(error: APIError) -> str:
    """Return all that a server says of a refusal: its message, and what its body has besides."""
    return f"{error.message} {getattr(error, 'code', '') or ''} {_without_input(getattr(error, 'body', ''))}"


def _without_input(body: Any) -> Any:
    """Return a body without the parts of the request that it repeats: pydantic shows the whole input."""
    if isinstance(body, Mapping):
        return {name: _without_input(value) for name, value in body.items() if name not in ("input", "request")}
    return [_without_input(each) for each in body] if isinstance(body, list) else body


def _named(where: str, whole: str, request: Mapping[str, Any]) -> frozenset[str]:
    """Return the parameters of a request that a part of a refusal names; ``whole`` is all of it."""
    said = where.casefold()
    found = [
        name
        for name in ("temperature", "seed", "stream_options", "reasoning_effort", "max_tokens", "max_completion_tokens")
        if name in request and re.search(rf"(?<![a-z_]){name}(?![a-z_])", said)
    ]
    if "logprobs" in request and "logprob" in said:
        found.append("logprobs")
    form = request.get("response_format")
    if form and _BOUNDS.search(whole.casefold()) and _unbounded(form) != form:
        found.append("list_bounds")
    elif form and _FORMAT.search(said):
        has_schema = form.get("type") == "json_schema"
        found.append("json_schema" if has_schema and "json_object" in whole else "response_format")
    if "stream" in request and "stream_options" not in found and _STREAM.search(said):
        found.append("stream")
    found += [name for name in sorted(request.keys() - _CHANGES.keys() - _KEPT - {"top_logprobs"}) if _says(said, name)]
    roles = {message["role"] for message in request["messages"]}
    is_of_role = _INSTRUCTIONS.search(said) or ("role" in said and ("system" in said or "developer" in said))
    if is_of_role and roles & {"system", "developer"}:
        found.append("system" if "system" in roles else "developer")
    return frozenset(found)


def _says(said: str, name: str) -> bool:
    """Return whether a refusal names a field that a profile sets: as it is, or in quotes where it is a word."""
    if said == name or "_" in name:
        return bool(re.search(rf"(?<![a-z_]){re.escape(name.casefold())}(?![a-z_])", said))
    return bool(re.search(rf"['\"`]{re.escape(name.casefold())}['\"`]", said))


FILE_NAME = "asked_without.json"


class AskedWithout:
    """The parameters that one model of one server is asked without.

    Args:
        model: the server's name of the model; some are known by it.
        read: files that other runs and processes may have written. A replay finds recordings by the request, so it
            reads what the run that recorded them has learned.
        written: the file to keep it in; None keeps it in this process.
    """

    def __init__(self, model: str, read: Iterable[Path] = (), written: Path | None = None) -> None:
        self._model, self._read, self._written = model, tuple(read), written
        self._names = known_without(model)
        self._is_kept = False
        self._look()

    @property
    def names(self) -> frozenset[str]:
        """The names of the parameters."""
        return self._names

    def learn(self, refused: frozenset[str], sent_without: frozenset[str], why: str) -> bool:
        """Take over the fields that a refusal named, and those that other processes have learned.

        Args:
            refused: the fields that the refusal named.
            sent_without: the fields that the refused request lacked.
            why: the server's words, which are logged.

        Returns:
            Whether another form of the request is left to try.
        """
        self._look()
        if "max_completion_tokens" in refused and "max_tokens" in known_without(self._model):
            # The name promised too much: this server wants the older parameter.
            self._names, refused = self._names - {"max_tokens"}, refused - {"max_completion_tokens"}
        learned = refused - self._names
        self._names |= refused
        if learned:
            log.info("%s is asked without %s: %s", self._model, ", ".join(sorted(learned)), why)
            self._keep()
        return self._names != sent_without

    def answered(self) -> None:
        """Keep the names of a request that was answered: what the cache of another run knew, a replay has to know."""
        if not self._is_kept:
            self._keep()

    def _look(self) -> None:
        for file in self._read:
            with suppress(OSError, ValueError, TypeError):
                found = json.loads(regular_bytes(file))["without"]
                self._names |= frozenset(name for name in found if isinstance(name, str))

    def _keep(self) -> None:
        self._is_kept = True
        said = {"model": self._model, "without": sorted(self._names - known_without(self._model))}
        if self._written is None or not said["without"]:
            return
        # Where it cannot be kept, each process learns it by a refusal of its own.
        with suppress(OSError):
            self._written.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._written, f"{json.dumps(said, indent=1)}\n".encode())


# Chat completions: parameters that a server refuses, and replies that are streamed.
#
# Replayed or computed in this process.

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


# The parameters of a request that a model or its server does not take, and what it is asked with instead.
#
# Reasoning models of OpenAI want ``max_completion_tokens`` and no temperature; Groq has no logprobs; older servers have
# no schemas; some know no system message. A few are known by name. The rest say so: a refusal that names parameters is
# answered by asking again without them. The prompt itself stays.
