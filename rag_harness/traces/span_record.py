"""A span as plain values, whoever has sent it: the SDK in this process, a service over HTTP, a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """Something that happened during a span, at a time in nanoseconds since 1970."""

    name: str
    at_ns: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SpanRecord:
    """A span that has ended.

    Attributes:
        name: what it is called.
        trace_id: 32 hexadecimal digits.
        span_id: 16 hexadecimal digits.
        parent_id: the span around it; empty where there is none.
        start_ns: when it began, in nanoseconds since 1970.
        end_ns: when it ended.
        attributes: its values by name: texts, numbers, truth values, and lists of them.
        events: what happened during it, in order.
        dropped: attributes that its SDK has thrown away.
        failed: whether its status is an error.
        message: what its status says.
        dropped_events: events that its SDK has thrown away.
    """

    name: str
    trace_id: str
    span_id: str
    parent_id: str = ""
    start_ns: int = 0
    end_ns: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[SpanEvent, ...] = ()
    dropped: int = 0
    failed: bool = False
    message: str = ""
    dropped_events: int = 0

    @property
    def ms(self) -> float:
        """How long it took, in milliseconds; 0 where its times are in the wrong order."""
        return max(self.end_ns - self.start_ns, 0) / 1e6
