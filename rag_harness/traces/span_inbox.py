"""Spans that come from elsewhere, dealt to the trials that wait for them, in whatever order they come."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable
from time import monotonic

from rag_harness.errors import TraceError
from rag_harness.traces.seen_trace import MOST_SPANS
from rag_harness.traces.span_kinds import kind_of
from rag_harness.traces.span_record import SpanRecord

_LOOK_SECONDS = 0.02


class AwaitedTrace:
    """The trace of one trial: what comes below the span that the harness is said to be.

    Attributes:
        trace_id: 32 hexadecimal digits, drawn.
        span_id: 16 hexadecimal digits, drawn: the span that the service's first one is below.
        spans: those that have come, each once.
    """

    def __init__(self) -> None:
        self.trace_id, self.span_id = secrets.token_hex(16), secrets.token_hex(8)
        self.spans: dict[str, SpanRecord] = {}
        self._last = monotonic()

    @property
    def traceparent(self) -> str:
        """The header that says which trace a request is of, and that its spans are wanted (W3C Trace Context)."""
        return f"00-{self.trace_id}-{self.span_id}-01"

    def take(self, span: SpanRecord) -> None:
        """Take a span; of one that comes twice the first counts."""
        if len(self.spans) <= MOST_SPANS:
            self.spans.setdefault(span.span_id, span)
        self._last = monotonic()

    @property
    def orphans(self) -> list[SpanRecord]:
        """Spans whose parent has not come."""
        known = self.spans.keys() | {self.span_id}
        return [span for span in list(self.spans.values()) if span.parent_id not in known]

    def is_whole(self, late: float) -> bool:
        """Return whether the service's first span has come, each other's parent, and nothing new for ``late`` seconds.

        The first span ends last, so an exporter sends it after those inside of it. Where it comes alone, those that
        say what the app did are still on their way.
        """
        spans = list(self.spans.values())
        has_first = any(span.parent_id == self.span_id for span in spans) and any(map(kind_of, spans))
        return has_first and not self.orphans and not self.is_coming(late)

    def is_coming(self, late: float) -> bool:
        """Return whether something new has come within ``late`` seconds."""
        return monotonic() - self._last < late


class SpanInbox:
    """Takes spans of any trace, and keeps those that are awaited.

    Args:
        address: where spans are sent to, for messages.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._awaited: dict[str, AwaitedTrace] = {}
        self._others, self._refused = 0, ""

    def expect(self) -> AwaitedTrace:
        """Return a new trace, whose spans are kept from now on until ``forget``."""
        trace = AwaitedTrace()
        self._awaited[trace.trace_id] = trace
        return trace

    def forget(self, trace: AwaitedTrace) -> None:
        """Keep no more spans of a trace."""
        self._awaited.pop(trace.trace_id, None)

    def take(self, spans: Iterable[SpanRecord]) -> None:
        """Take spans from a request. May be called from any thread."""
        for span in spans:
            trace = self._awaited.get(span.trace_id)
            if trace is None:
                self._others += 1
            else:
                trace.take(span)

    def refuse(self, why: str) -> None:
        """Note why a request could not be read, for the message of a trial that waits in vain."""
        self._refused = why

    async def spans_of(self, trace: AwaitedTrace, seconds: float, late: float) -> list[SpanRecord]:
        """Return the spans of a trace once it is whole, and nothing new has come for ``late`` seconds.

        Raises:
            TraceError: none has come within ``seconds``, the span around one has not, or they are still coming.
        """
        until = monotonic() + seconds
        while not trace.is_whole(late) and monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
        if not trace.spans:
            raise TraceError(f"No span of this trial came to {self._address} within {seconds:g} s.{self._hint()}")
        if trace.orphans:
            lost = trace.orphans[0]
            raise TraceError(
                f"Span {lost.name!r} came to {self._address}, and the span around it did not within {seconds:g} s, so "
                f"others may be missing, too. Let the service export sooner, OTEL_BSP_SCHEDULE_DELAY=500, and sample "
                f"all; or wait longer: traces_wait."
            )
        if trace.is_coming(late):
            raise TraceError(
                f"Spans of this trial were still coming to {self._address} {seconds:g} s after the answer, so others "
                f"may be missing. Let the service export sooner, OTEL_BSP_SCHEDULE_DELAY=500; or wait longer: "
                f"traces_wait."
            )
        return list(trace.spans.values())

    def _hint(self) -> str:
        if self._refused:
            return f" What came could not be read: {self._refused}"
        if self._others:
            return (
                f" {self._others} spans of other traces did: the service begins traces of its own. Let it take up the "
                f"header traceparent, as the instrumentations of web frameworks do."
            )
        return (
            f" Start the service with OTEL_EXPORTER_OTLP_TRACES_ENDPOINT={self._address} and "
            "OTEL_BSP_SCHEDULE_DELAY=500, and instrument it, its web framework included: "
            "docs/how-to/traces-service.md."
        )
