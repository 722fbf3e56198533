"""An answer as it comes -> one JSON that ``[read]`` looks into, by its content type."""

from __future__ import annotations

from typing import Any, Protocol

from rag_harness.pipelines.endpoint.parsing import parsed
from rag_harness.pipelines.endpoint.streams import ChatChunks, Messages, NamedEvents
from rag_harness.settings.endpoint_spec import EndpointSpec


class Heard(Protocol):
    """Takes an answer in as it comes.

    Attributes:
        first: when its first token came, on perf_counter's clock.
        is_done: whether it has said that it is whole, though its connection is open still.
    """

    first: float | None
    is_done: bool

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
        return ChatChunks(spec.name)
    return Messages(spec.name) if spec.kind == "mcp" else NamedEvents(spec.name, spec.stream)


class _Whole:
    """One JSON."""

    first: float | None = None
    is_done = False

    def __init__(self, name: str, kind: str) -> None:
        self._name, self._kind = name, kind
        self._parts: list[bytes] = []

    def add(self, part: bytes) -> None:
        self._parts.append(part)

    def document(self) -> Any:
        return parsed(b"".join(self._parts), self._name, self._kind)
