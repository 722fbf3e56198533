"""One trial that is traced: the spans below its root, and what makes it uncertain whether they are all."""

from __future__ import annotations

import asyncio
from time import monotonic

from opentelemetry.sdk.trace import ReadableSpan, Span
from opentelemetry.trace import StatusCode

from rag_harness.errors import TraceError
from rag_harness.traces.in_process.workers import Worker, goes_on, name_of, workers_under_way
from rag_harness.traces.span_kinds import TELLS_WORK, kind_in
from rag_harness.traces.span_record import SpanEvent, SpanRecord

LATE_SECONDS = 2.0
"""How long spans that have begun may take to end once the app has answered."""
_LOOK_SECONDS = 0.01
_LOST = (
    "belongs to no trial: its thread has lost the context. Start it by asyncio.to_thread(work) in place of "
    "run_in_executor, by pool.submit(contextvars.copy_context().run, work) in place of pool.submit(work), or "
    "instrument all threads: opentelemetry-instrumentation-threading"
)
_GOES_ON = (
    "goes on after the trial that has started it, and does its work in the context of that trial, so spans of other "
    "trials may be among its own. Give each piece of work the context of whoever asks for it: queue.put(("
    "contextvars.copy_context(), work)), and context.run(work) in the worker, which is started before the trials; or "
    "take a ThreadPoolExecutor: pool.submit(contextvars.copy_context().run, work)"
)
_NONE = (
    "No span came from the app. Instrument it at the tracer provider that is asked here, before it is made: "
    "LangChainInstrumentor().instrument(tracer_provider=rag_traced.provider), and rag_traced(app). Or name the "
    "provider that it has: rag_traced(app, provider=…). See docs/how-to/traces.md"
)


class TracedTrial:
    """One trial: its root span, and the spans below.

    Args:
        root: the root span.
        longest_text: most characters that the SDK keeps of a text; None: all.

    Attributes:
        before: threads and tasks that were there when it began.
    """

    def __init__(self, root: Span, longest_text: int | None = None) -> None:
        self.root = root
        self._longest = longest_text
        self._open: dict[int, ReadableSpan] = {}
        self._ended: list[ReadableSpan] = []
        self._lost: list[ReadableSpan] = []
        self.before: set[Worker] = workers_under_way()
        self._workers: dict[Worker, ReadableSpan] = {}

    def begun(self, span: Span) -> None:
        """Note that a span has begun."""
        self._open[span_id_of(span)] = span

    def take(self, span: ReadableSpan) -> None:
        """Take a span that has ended."""
        if span_id_of(span) != span_id_of(self.root):
            self._ended.append(span)
            self._open.pop(span_id_of(span), None)

    def lose(self, span: ReadableSpan) -> None:
        """Note a span of no trial, unless it began before this one."""
        if (span.start_time or 0) >= (self.root.start_time or 0):
            self._lost.append(span)

    def watch(self, worker: Worker, span: ReadableSpan) -> None:
        """Note a worker that a trial has started while this one was under way, and what it did."""
        self._workers.setdefault(worker, span)

    @property
    def _alive(self) -> list[Worker]:
        return [worker for worker in list(self._workers) if goes_on(worker)]

    @property
    def ms(self) -> float:
        """What it took from the first to the last, in milliseconds; 0 until its root span has ended."""
        return max((self.root.end_time or 0) - (self.root.start_time or 0), 0) / 1e6

    @property
    def trace_id(self) -> str:
        """The id of its trace, 32 hexadecimal digits."""
        return f"{trace_id_of(self.root):032x}"

    def so_far(self) -> list[SpanRecord]:
        """Return the spans that have ended."""
        return [record_of(span) for span in list(self._ended)]

    async def spans(self) -> list[SpanRecord]:
        """Return the spans below the root, once all have ended.

        Raises:
            TraceError: spans were lost or cut, have not ended in time, may be another trial's, or there is none.
        """
        until = monotonic() + LATE_SECONDS
        while (self._open or self._alive) and monotonic() < until:
            await asyncio.sleep(_LOOK_SECONDS)
        self._check()
        return self.so_far()

    def _check(self) -> None:
        if self._lost:
            raise TraceError(f"Span {self._lost[0].name!r} {_LOST}.")
        for worker in self._alive:
            raise TraceError(f"{name_of(worker)}, which made span {self._workers[worker].name!r}, {_GOES_ON}.")
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
    told = [span.attributes or {}, *(event.attributes or {} for event in span.events)]
    values = (value for attributes in told for value in attributes.values())
    texts = (each for value in values for each in (value if isinstance(value, (list, tuple)) else (value,)))
    return any(isinstance(text, str) and len(text) >= longest for text in texts)


def record_of(span: ReadableSpan) -> SpanRecord:
    """Return a span of the SDK as plain values."""
    return SpanRecord(
        span.name,
        f"{trace_id_of(span):032x}",
        f"{span_id_of(span):016x}",
        f"{span.parent.span_id:016x}" if span.parent is not None else "",
        span.start_time or 0,
        span.end_time or 0,
        dict(span.attributes or {}),
        tuple(SpanEvent(event.name, event.timestamp, dict(event.attributes or {})) for event in span.events),
        span.dropped_attributes,
        span.status.status_code is StatusCode.ERROR,
        span.status.description or "",
        span.dropped_events,
    )


def trace_id_of(span: ReadableSpan) -> int:
    """Return the id of a span's trace as a number; 0 where it has none."""
    return span.context.trace_id if span.context is not None else 0


def span_id_of(span: ReadableSpan) -> int:
    """Return the id of a span as a number; 0 where it has none."""
    return span.context.span_id if span.context is not None else 0
