"""Parser for server-sent events: names, data, and the time of the first piece of text."""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any

from rag_harness.pipelines.endpoint.parsing import parsed_json


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
