"""Three kinds of streams, each merged into one JSON for the paths of ``[read]``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from rag_harness.errors import ModelCallError, ModelOutputError
from rag_harness.pipelines.endpoint.parsing import parsed_json
from rag_harness.pipelines.endpoint.paths import Path, described
from rag_harness.pipelines.endpoint.stream import StreamedAnswer
from rag_harness.settings.endpoint_spec import StreamReading

_DONE = "[DONE]"


class NamedEvents(StreamedAnswer):
    """Events with the names of the spec."""

    def __init__(self, name: str, reading: StreamReading) -> None:
        super().__init__(name)
        self._reading = reading
        self._path = Path(reading.text, f"{name}: stream.text") if reading.text else None
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
            raise ModelOutputError(f"{self._name}: an event of the stream is no object: {data[:80]!r}", data)
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
        said = f"{self._name}: {where} of an event of the stream is {described(value)}; that is no chat completion."
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
