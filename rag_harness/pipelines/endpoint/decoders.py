"""Decoders of a response while it arrives: JSON, server-sent events and streams of chunks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, Protocol

from rag_harness.core.errors import ModelCallError, ModelOutputError
from rag_harness.core.json_text import DEEPEST_JSON, is_deep
from rag_harness.core.settings.endpoints import EndpointSpec, StreamReading
from rag_harness.pipelines.endpoint.answer import AnswerPath, described

_SHOWN = 120


def parsed_json(content: bytes, name: str, kind: str) -> Any:
    """Return the JSON of an answer.

    Args:
        content: the whole body.
        name: the name of the service in messages.
        kind: the content type.

    Raises:
        ModelOutputError: the body is not UTF-8, not JSON (HTML, cut short, empty), or nested too deeply.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        said = content[:_SHOWN].decode("utf-8", "replace")
        raise ModelOutputError(f"{name} answered with no UTF-8, at byte {error.start}: {said!r}", said) from None
    try:
        found = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise _too_deep(name, text) from None
    except ValueError as error:
        raise ModelOutputError(_no_json(text, name, kind, error), text[:4000]) from None
    if text.count("[") + text.count("{") > DEEPEST_JSON and is_deep(found):
        raise _too_deep(name, text)
    return found


def _no_json(text: str, name: str, kind: str, error: ValueError) -> str:
    what = kind.partition(";")[0] or "a text"
    if not text.strip():
        return f"{name} answered with nothing: {what} without a body."
    if text.lstrip()[:1] == "<":
        return f"{name} answered with {what} that is not JSON but a page: {text.strip()[:_SHOWN]!r}. Is the url right?"
    end = (
        "; it looks cut short" if getattr(error, "pos", 0) >= len(text.rstrip()) or "Unterminated" in str(error) else ""
    )
    return f"{name} answered with {what} that is not JSON ({error}{end}): {text[:_SHOWN]!r}"


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _too_deep(name: str, text: str) -> ModelOutputError:
    return ModelOutputError(f"{name} answered with JSON that is nested deeper than {DEEPEST_JSON} levels.", text[:4000])


class EventLines:
    """Cuts a stream into events with name and data (HTML Standard, "Server-sent events"). Half an event is dropped."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._event, self._data = "message", list[str]()

    def feed(self, part: bytes) -> Iterator[tuple[str, str]]:
        self._rest.append(part)
        if b"\n" not in part:
            return  # joined once at its end, so that a line of a thousand parts is not copied a thousand times
        lines = b"".join(self._rest).replace(b"\r\n", b"\n").split(b"\n")
        self._rest = [lines.pop()]
        for line in lines:
            name, _, value = line.decode("utf-8", "replace").rstrip("\r").partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._event = value or "message"
            elif not line.strip(b"\r"):
                if self._data:
                    yield self._event, "\n".join(self._data)
                self._event, self._data = "message", []


class StreamedAnswer:
    """Base of all streams."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines = EventLines()
        self.first: float | None = None
        self._texts: list[str] = []
        self.is_done = False

    def add(self, part: bytes) -> None:
        for event, data in self._lines.feed(part):
            self._take(event, data)

    def _take(self, event: str, data: str) -> None:
        raise NotImplementedError

    def _say(self, text: str) -> None:
        if text:
            self.first = self.first or perf_counter()
            self._texts.append(text)

    def _json(self, data: str) -> Any:
        return parsed_json(data.encode(), f"{self._name}, an event of its stream", "")

    def _broke_off(self, before: str) -> ConnectionError:
        # A connection that closes early looks like the end of a stream. Half an answer must not count as complete.
        return ConnectionError(f"the stream broke off before {before}; {len(self._texts)} pieces of text had come")


# Three kinds of streams, each merged into one JSON for the paths of ``[read]``.

_DONE = "[DONE]"


class NamedEvents(StreamedAnswer):
    """Events with the names of the spec."""

    def __init__(self, name: str, reading: StreamReading) -> None:
        super().__init__(name)
        self._reading = reading
        self._path = AnswerPath(reading.text, f"{name}: stream.text") if reading.text else None
        self._final: Any = {}
        self._is_whole = False
        self._events: dict[str, list[Any]] = {}

    def _take(self, event: str, data: str) -> None:
        reading = self._reading
        if event == reading.error:
            raise ModelCallError(f"{self._name} says that it failed: {data[:300]}")
        if data == _DONE:
            self.is_done = True
            return
        if event == reading.final:
            self._is_whole, self._final = True, self._json(data)
        elif event in (reading.token, reading.replace):
            if event == reading.replace:
                self._texts.clear()
            self._say(self._piece(data))
        else:
            self._events.setdefault(event, []).append(_json_or_text(data))

    def _piece(self, data: str) -> str:
        if self._path is None:
            return data
        value = self._json(data)
        found = self._path.find(value)
        if len(found) == 1 and isinstance(found[0], str):
            return found[0]
        if self._path.is_optional:
            return ""
        raise ModelOutputError(
            f"{self._name}: stream.text = {self._path.text!r} finds no text in an event. {self._path.nearest(value)}.",
            data,
        )

    def document(self) -> Any:
        if self._reading.final and not self._is_whole:
            others = f" (of other names: {', '.join(map(repr, self._events))})" if self._events else ""
            raise self._broke_off(f"its event {self._reading.final!r}{others}")
        final = self._final if isinstance(self._final, dict) else {"final": self._final}
        return {"streamed": "".join(self._texts), "events": self._events, **final}


class ChatChunks(StreamedAnswer):
    """Chunks of an OpenAI-compatible completion, merged into the form of a plain completion."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._whole: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._end = ""

    def _take(self, event: str, data: str) -> None:  # noqa: ARG002 - they have no names
        if data.startswith(_DONE):
            self._end, self.is_done = self._end or "done", True
            return
        chunk = self._json(data)
        if not isinstance(chunk, dict):
            raise ModelOutputError(f"{self._name}: an event of the stream is not an object: {data[:80]!r}", data)
        if chunk.get("error"):
            raise ModelCallError(f"{self._name} says that it failed: {json.dumps(chunk['error'])[:300]}")
        self._whole.update({key: value for key, value in chunk.items() if key != "choices" and value is not None})
        choices = chunk.get("choices") or []
        if not isinstance(choices, list):
            raise self._strange("choices", choices)
        for choice in choices[:1]:
            self._choose(choice)

    def _choose(self, choice: Any) -> None:
        delta = (choice.get("delta") or {}) if isinstance(choice, Mapping) else None
        if not isinstance(delta, Mapping):
            raise self._strange("choices[0]", choice)
        content = delta.get("content") or ""
        if not isinstance(content, str):
            raise self._strange("choices[0].delta.content", content)
        self._end = choice.get("finish_reason") or self._end
        self._say(content)
        self._message.update({key: value for key, value in delta.items() if key != "content" and value is not None})

    def _strange(self, where: str, value: Any) -> ModelOutputError:
        said = f"{self._name}: {where} of an event of the stream is {described(value)}; that is not a chat completion."
        return ModelOutputError(said, json.dumps(value))

    def document(self) -> Any:
        if not self._end:
            raise self._broke_off("its end")
        message = {**self._message, "content": "".join(self._texts)}
        return {**self._whole, "choices": [{"message": message, "finish_reason": self._end}]}


class Messages(StreamedAnswer):
    """JSON-RPC messages of an MCP server. The message with a result or an error is the response."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._response: Any = None

    def _take(self, event: str, data: str) -> None:  # noqa: ARG002 - all have the same
        message = self._json(data)
        if isinstance(message, dict) and ("result" in message or "error" in message):
            self._response, self.is_done = message, True

    def document(self) -> Any:
        if self._response is None:
            raise self._broke_off("the response came")
        return self._response


def _json_or_text(data: str) -> Any:
    try:
        return parsed_json(data.encode(), "", "")
    except ModelOutputError:
        return data


# Readers of an answer while it arrives, by content type. Each gives one JSON for the paths of ``[read]``.


class ResponseDecoder(Protocol):
    """Collects an answer while it arrives.

    Attributes:
        first: time of its first token, on perf_counter's clock.
        is_done: whether the answer is complete; its connection may still be open.
    """

    first: float | None
    is_done: bool

    def add(self, part: bytes) -> None:
        """Add a part.

        Raises:
            ModelCallError: the service reports an error.
            ModelOutputError: an event has the wrong form.
        """
        ...

    def document(self) -> Any:
        """Return the whole answer.

        Raises:
            ConnectionError: the answer broke off.
            ModelOutputError: the answer cannot be parsed.
        """
        ...


def decoder_of(spec: EndpointSpec, kind: str) -> ResponseDecoder:
    """Return the collector for an answer of content type ``kind``."""
    if "event-stream" not in kind:
        return _JsonDecoder(spec.name, kind)
    if spec.kind == "openai":
        return ChatChunks(spec.name)
    return Messages(spec.name) if spec.kind == "mcp" else NamedEvents(spec.name, spec.stream)


class _JsonDecoder:
    """Collects an answer that is one JSON."""

    first: float | None = None
    is_done = False

    def __init__(self, name: str, kind: str) -> None:
        self._name, self._kind = name, kind
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)

    def document(self) -> Any:
        return parsed_json(b"".join(self._parts), self._name, self._kind)
