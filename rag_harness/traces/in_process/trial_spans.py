"""Deals spans to the trials that are under way, by the id of their trace."""

from __future__ import annotations

import asyncio
import threading
from time import monotonic, time_ns

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode

from rag_harness.errors import TraceError
from rag_harness.traces.span_kinds import TELLS_WORK, kind_in
from rag_harness.traces.span_record import SpanEvent, SpanRecord

LATE_SECONDS = 2.0
"""How long spans that have begun may take to end once the app has answered."""
_LOOK_SECONDS = 0.01
_OUR_LOOP = "rag-trials"
"""The thread of the trials' loop. What begins there without a trial is the harness's own: a judge, say."""
_LOST = (
    "belongs to no trial: its thread has lost the context. Start it by asyncio.to_thread(work) in place of "
    "run_in_executor, by pool.submit(contextvars.copy_context().run, work) in place of pool.submit(work), or "
    "instrument all threads: opentelemetry-instrumentation-threading"
)
_NONE = (
    "No span came from the app. Instrument it at the tracer provider that is asked here, before it is made: "
    "LangChainInstrumentor().instrument(tracer_provider=rag_traced.provider), and rag_traced(app). Or name the "
    "provider that it has: rag_traced(app, provider=…). See docs/traces.md"
)


class TrialSpans(SpanProcessor):
    """Gets all spans of one tracer provider."""

    def __init__(self) -> None:
        self._under_way: dict[int, TracedTrial] = {}
        self._over: dict[int, int] = {}

    def begin(self, root: Span, longest_text: int | None) -> TracedTrial:
        """Collect the spans below ``root`` from now on. ``longest_text`` is what their SDK keeps of a text."""
        found = self._under_way[_trace_id(root)] = TracedTrial(root, longest_text)
        return found

    def end(self, trial: TracedTrial) -> None:
        """Collect no more spans of a trial."""
        self._under_way.pop(_trace_id(trial.root), None)
        self._over[_trace_id(trial.root)] = time_ns()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - as the SDK has it
        trial = self._under_way.get(_trace_id(span))
        if trial is not None:
            trial.begun(span)

    def on_end(self, span: ReadableSpan) -> None:
        trial = self._under_way.get(_trace_id(span))
        if trial is not None:
            trial.take(span)
        elif self._under_way and self._is_lost(span):
            for each in list(self._under_way.values()):
                each.lose(span)

    def _is_lost(self, span: ReadableSpan) -> bool:
        """Return whether a span of no trial under way may belong to one."""
        if kind_in(span.attributes or {}) not in TELLS_WORK:
            return False
        over = self._over.get(_trace_id(span))
        if over is not None:
            # A worker that an earlier trial has started does the work of later ones in its context.
            return (span.start_time or 0) > over
        here = threading.current_thread()
        # The thread of the tests runs other tests meanwhile.
        return here is not threading.main_thread() and here.name != _OUR_LOOP


class TracedTrial:
    """One trial: its root span, and the spans below.

    Args:
        root: the root span.
        longest_text: most characters that the SDK keeps of a text; None: all.
    """

    def __init__(self, root: Span, longest_text: int | None = None) -> None:
        self.root = root
        self._longest = longest_text
        self._open: dict[int, ReadableSpan] = {}
        self._ended: list[ReadableSpan] = []
        self._lost: list[ReadableSpan] = []

    def begun(self, span: Span) -> None:
        """Note that a span has begun."""
        self._open[_span_id(span)] = span

    def take(self, span: ReadableSpan) -> None:
        """Take a span that has ended."""
        if _span_id(span) != _span_id(self.root):
            self._ended.append(span)
            self._open.pop(_span_id(span), None)

    def lose(self, span: ReadableSpan) -> None:
        """Note a span of no trial, unless it began before this one."""
        if (span.start_time or 0) >= (self.root.start_time or 0):
            self._lost.append(span)

    @property
    def ms(self) -> float:
        """What it took from the first to the last, in milliseconds; 0 until its root span has ended."""
        return max((self.root.end_time or 0) - (self.root.start_time or 0), 0) / 1e6

    @property
    def trace_id(self) -> str:
        """The id of its trace, 32 hexadecimal digits."""
        return f"{_trace_id(self.root):032x}"

    def so_far(self) -> list[SpanRecord]:
        """Return the spans that have ended."""
        return [record_of(span) for span in list(self._ended)]

    async def spans(self) -> list[SpanRecord]:
        """Return the spans below the root, once all have ended.

        Raises:
            TraceError: spans were lost or cut, have not ended in time, or there is none.
        """
        until = monotonic() + LATE_SECONDS
        while self._open and monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
        self._check()
        return self.so_far()

    def _check(self) -> None:
        if self._lost:
            raise TraceError(f"Span {self._lost[0].name!r} {_LOST}.")
        late = [span for span in self._open.values() if kind_in(span.attributes or {}) in ("", *TELLS_WORK)]
        if late:
            raise TraceError(
                f"Span {late[0].name!r} had not ended {LATE_SECONDS:g} s after the app had answered, so the row would "
                f"lack what it tells. Let the app wait for its work, and read a streamed answer to its end."
            )
        if not self._ended:
            raise TraceError(f"{_NONE}.")
        longest = self._longest
        if longest is not None and (cut := [span for span in self._ended if _is_cut(span, longest)]):
            raise TraceError(
                f"A text of span {cut[0].name!r} was cut at {longest} characters, and contexts are read off it. "
                f"Unset OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT and OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT, or whatever has "
                f"set SpanLimits(max_span_attribute_length=…)."
            )


def _is_cut(span: ReadableSpan, longest: int) -> bool:
    return any(isinstance(value, str) and len(value) >= longest for value in (span.attributes or {}).values())


def record_of(span: ReadableSpan) -> SpanRecord:
    """Return a span of the SDK as plain values."""
    return SpanRecord(
        span.name,
        f"{_trace_id(span):032x}",
        f"{_span_id(span):016x}",
        f"{span.parent.span_id:016x}" if span.parent is not None else "",
        span.start_time or 0,
        span.end_time or 0,
        dict(span.attributes or {}),
        tuple(SpanEvent(event.name, event.timestamp, dict(event.attributes or {})) for event in span.events),
        tuple(f"{link.context.trace_id:032x}/{link.context.span_id:016x}" for link in span.links),
        span.dropped_attributes,
        span.status.status_code is StatusCode.ERROR,
        span.status.description or "",
    )


def _trace_id(span: ReadableSpan) -> int:
    return span.context.trace_id if span.context is not None else 0


def _span_id(span: ReadableSpan) -> int:
    return span.context.span_id if span.context is not None else 0
