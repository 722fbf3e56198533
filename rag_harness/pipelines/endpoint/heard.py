"""Readers of an answer while it arrives, by content type. Each gives one JSON for the paths of ``[read]``."""

from __future__ import annotations

from typing import Any, Protocol

from rag_harness.pipelines.endpoint.parsing import parsed_json
from rag_harness.pipelines.endpoint.streams import ChatChunks, Messages, NamedEvents
from rag_harness.settings.endpoint_spec import EndpointSpec


class Heard(Protocol):
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


def heard_of(spec: EndpointSpec, kind: str) -> Heard:
    """Return the collector for an answer of content type ``kind``."""
    if "event-stream" not in kind:
        return _Whole(spec.name, kind)
    if spec.kind == "openai":
        return ChatChunks(spec.name)
    return Messages(spec.name) if spec.kind == "mcp" else NamedEvents(spec.name, spec.stream)


class _Whole:
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
