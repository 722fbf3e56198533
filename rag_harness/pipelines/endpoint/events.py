"""Server-sent events -> one JSON that ``[read]`` looks into, as they come: the first token has its time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from time import perf_counter
from typing import Any, Protocol

from rag_harness.errors import ModelCallError, ModelOutputError
from rag_harness.pipelines.endpoint.parsing import parsed
from rag_harness.pipelines.endpoint.paths import Path
from rag_harness.settings.endpoints import EndpointSpec, StreamReading

_DONE = "[DONE]"


class Heard(Protocol):
    """Takes an answer in as it comes. ``first`` is when its first token came, on perf_counter's clock."""

    first: float | None

    def add(self, part: bytes) -> None:
        """Take in a part.

        Raises:
            ModelCallError: the service says that it failed.
            ModelOutputError: an event is not what was agreed.
        """
        ...

    def document(self) -> Any:
        """Return the whole answer.

        Raises:
            ConnectionError: it broke off.
            ModelOutputError: it cannot be read.
        """
        ...


def heard_of(spec: EndpointSpec, kind: str) -> Heard:
    """Return what takes in an answer of content type ``kind``."""
    if "event-stream" not in kind:
        return _Whole(spec.name, kind)
    if spec.kind == "openai":
        return _Chat(spec.name)
    return _Messages(spec.name) if spec.kind == "mcp" else _Named(spec.name, spec.stream)


class _Whole:
    """One JSON."""

    first: float | None = None

    def __init__(self, name: str, kind: str) -> None:
        self._name, self._kind = name, kind
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)

    def document(self) -> Any:
        return parsed(b"".join(self._parts), self._name, self._kind)


class _Lines:
    """Cuts a stream into events (HTML Standard, "Server-sent events"): name and data; half an event is none."""

    def __init__(self) -> None:
        self._rest = b""
        self._event, self._data = "message", list[str]()

    def feed(self, part: bytes) -> Iterator[tuple[str, str]]:
        lines = (self._rest + part).replace(b"\r\n", b"\n").split(b"\n")
        self._rest = lines.pop()
        for line in lines:
            name, _, value = line.decode("utf-8", "replace").rstrip("\r").partition(":")
            value = value.removeprefix(" ")
            if name == "data":
                self._data.append(value)
            elif name == "event":
                self._event = value
            elif not line.strip(b"\r"):
                if self._data:
                    yield self._event, "\n".join(self._data)
                self._event, self._data = "message", []


class _Streamed:
    """What the streams have in common."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lines = _Lines()
        self.first: float | None = None
        self._texts: list[str] = []
        self._is_whole = False

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
        return parsed(data.encode(), f"{self._name}, an event of its stream", "")

    def _broke_off(self, before: str) -> ConnectionError:
        # Half an answer must not pass for a whole one: a connection closed early looks like a stream's end.
        return ConnectionError(f"the stream broke off before {before}; {len(self._texts)} pieces of text had come")


class _Named(_Streamed):
    """Events by name, as the spec has them."""

    def __init__(self, name: str, reading: StreamReading) -> None:
        super().__init__(name)
        self._reading = reading
        self._path = Path(reading.text, f"{name}: stream.text") if reading.text else None
        self._final: Any = {}
        self._events: dict[str, list[Any]] = {}

    def _take(self, event: str, data: str) -> None:
        reading = self._reading
        if event == reading.error:
            raise ModelCallError(f"{self._name} says that it failed: {data[:300]}")
        if data == _DONE:
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
            raise self._broke_off(f"its event {self._reading.final!r}")
        final = self._final if isinstance(self._final, dict) else {"final": self._final}
        return {"streamed": "".join(self._texts), "events": self._events, **final}


class _Chat(_Streamed):
    """Chunks of an OpenAI-compatible completion; what else they carry stands where a plain completion has it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._whole: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._end = ""

    def _take(self, event: str, data: str) -> None:  # noqa: ARG002 - they have no names
        if data.startswith(_DONE):
            self._end = self._end or "done"
            return
        chunk = self._json(data)
        if not isinstance(chunk, dict):
            raise ModelOutputError(f"{self._name}: an event of the stream is no object: {data[:80]!r}", data)
        if chunk.get("error"):
            raise ModelCallError(f"{self._name} says that it failed: {json.dumps(chunk['error'])[:300]}")
        self._whole.update({key: value for key, value in chunk.items() if key != "choices" and value is not None})
        for choice in (chunk.get("choices") or ())[:1]:
            self._choose(choice)

    def _choose(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        self._end = choice.get("finish_reason") or self._end
        self._say(delta.get("content") or "")
        self._message.update({key: value for key, value in delta.items() if key != "content" and value is not None})

    def document(self) -> Any:
        if not self._end:
            raise self._broke_off("its end")
        message = {**self._message, "content": "".join(self._texts)}
        return {**self._whole, "choices": [{"message": message, "finish_reason": self._end}]}


class _Messages(_Streamed):
    """JSON-RPC messages of an MCP server: the response is the one that has a result or an error."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._response: Any = None

    def _take(self, event: str, data: str) -> None:  # noqa: ARG002 - all have the same
        message = self._json(data)
        if isinstance(message, dict) and ("result" in message or "error" in message):
            self._response = message

    def document(self) -> Any:
        if self._response is None:
            raise self._broke_off("the response came")
        return self._response


def _json_or_text(data: str) -> Any:
    try:
        return parsed(data.encode(), "", "")
    except ModelOutputError:
        return data
