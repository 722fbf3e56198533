"""Spans of trials in this process, by a tracer provider that is not installed globally."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import monotonic, time_ns
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.trace import StatusCode

from rag_harness.core.concurrency import is_in_force
from rag_harness.core.errors import PrerequisiteError, TraceError
from rag_harness.pipelines.otel.spans import TELLS_WORK, SpanEvent, SpanRecord, kind_in

Worker: TypeAlias = "threading.Thread | asyncio.Task[Any]"
_FOREIGN = ("anyio", "rag_harness")
"""Packages whose threads take up the context of each piece of work."""


def worker_here() -> Worker | None:
    """Return the task or the thread that runs; None for one that takes up the context of each piece of work."""
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is not None:
        return task
    thread = threading.current_thread()
    is_foreign = type(thread).__module__.partition(".")[0] in _FOREIGN or thread.name.startswith("rag-")
    return None if is_foreign or thread is threading.main_thread() else thread


def _is_of_pool(thread: threading.Thread) -> bool:
    """Return whether a thread is one of ThreadPoolExecutor's, or was not started by Python at all."""
    from concurrent.futures import thread as pools

    # Code that gives work to a pool passes its context on, or loses it, which is noticed. No public API tells which.
    return thread in getattr(pools, "_threads_queues", ()) or type(thread).__name__ == "_DummyThread"


def workers_under_way() -> set[Worker]:
    """Return all threads, and the tasks of the loop that runs."""
    found: set[Worker] = set(threading.enumerate())
    try:
        return found | asyncio.all_tasks()
    except RuntimeError:
        return found


def goes_on(worker: Worker) -> bool:
    """Return whether a thread or a task has not ended. Threads of pools do not count: they keep no context."""
    if isinstance(worker, threading.Thread):
        # Checked late, because a pool notes its threads after it has started them.
        return worker.is_alive() and not _is_of_pool(worker)
    return not worker.done()


def name_of(worker: Worker) -> str:
    """Return how a thread or a task is called."""
    return f"Thread {worker.name!r}" if isinstance(worker, threading.Thread) else f"Task {worker.get_name()!r}"


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
    "trials may be among its own. Give each piece of work the context of the caller: queue.put(("
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
        """Note a worker that a trial has started while this one was under way, and its span."""
        self._workers.setdefault(worker, span)

    @property
    def _alive(self) -> list[Worker]:
        return [worker for worker in list(self._workers) if goes_on(worker)]

    @property
    def ms(self) -> float:
        """The time from the first to the last, in milliseconds; 0 until its root span has ended."""
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


_OUR_LOOP = "rag-trials"
"""The thread of the trials' loop, where judges and trials that are not traced run, too: each below a deadline."""
_MOST_OVER = 10_000
"""Trials that are over, and whose late spans are recognised."""


class TrialSpans(SpanProcessor):
    """Gets all spans of one tracer provider."""

    def __init__(self) -> None:
        self._under_way: dict[int, TracedTrial] = {}
        self._over: OrderedDict[int, int] = OrderedDict()

    def begin(self, root: Span, longest_text: int | None) -> TracedTrial:
        """Collect the spans below ``root`` from now on. ``longest_text`` is what their SDK keeps of a text."""
        found = self._under_way[trace_id_of(root)] = TracedTrial(root, longest_text)
        return found

    def end(self, trial: TracedTrial) -> None:
        """Collect no more spans of a trial."""
        self._under_way.pop(trace_id_of(trial.root), None)
        self._over[trace_id_of(trial.root)] = time_ns()
        if len(self._over) > _MOST_OVER:
            self._over.popitem(last=False)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:  # noqa: ARG002 - as the SDK has it
        trial = self._under_way.get(trace_id_of(span))
        if trial is not None:
            trial.begun(span)

    def on_end(self, span: ReadableSpan) -> None:
        trial = self._under_way.get(trace_id_of(span))
        if trial is not None:
            trial.take(span)
            if (worker := self._started_by(trial, span)) is not None:
                for each in list(self._under_way.values()):
                    each.watch(worker, span)
        elif self._under_way and self._is_lost(span):
            for each in list(self._under_way.values()):
                each.lose(span)

    @staticmethod
    def _started_by(trial: TracedTrial, span: ReadableSpan) -> Worker | None:
        """Return the worker here if a trial has started it. Its spans belong to that trial, whatever else uses it."""
        if kind_in(span.attributes or {}) not in TELLS_WORK:
            return None
        worker = worker_here()
        return None if worker is None or worker in trial.before else worker

    def _is_lost(self, span: ReadableSpan) -> bool:
        """Return whether a span of no trial under way may belong to one."""
        if kind_in(span.attributes or {}) not in TELLS_WORK:
            return False
        over = self._over.get(trace_id_of(span))
        if over is not None:
            # A worker that an earlier trial has started does the work of later ones in its context.
            return (span.start_time or 0) > over
        here = threading.current_thread()
        if here.name == _OUR_LOOP:
            return not is_in_force()
        # The thread of the tests runs other tests meanwhile.
        return here is not threading.main_thread()


# The tracer provider of an app under test, and the root span of a trial there. None is installed globally.

_attached: WeakKeyDictionary[Any, TrialSpans] = WeakKeyDictionary()
_attaching = threading.Lock()


def new_provider() -> TracerProvider:
    """Return a tracer provider that keeps spans whole. It is not installed: pass it to an instrumentation."""
    limits = SpanLimits(
        max_attributes=SpanLimits.UNSET,
        max_span_attributes=SpanLimits.UNSET,
        max_attribute_length=SpanLimits.UNSET,
        max_span_attribute_length=SpanLimits.UNSET,
        max_events=SpanLimits.UNSET,
        max_event_attributes=SpanLimits.UNSET,
    )
    return TracerProvider(span_limits=limits)


@contextmanager
def traced_trial(provider: Any, name: str, attributes: Mapping[str, str]) -> Iterator[TracedTrial]:
    """Run the block below a new root span, whatever span is around it, and collect the spans that it makes.

    Args:
        provider: the app's tracer provider; None: the global one.
        name: the name of the root span.
        attributes: its attributes.

    Raises:
        PrerequisiteError: no provider is set, or it drops the root span. The app was not asked yet.
    """
    asked = _checked(trace.get_tracer_provider() if provider is None else provider)
    spans, tracer = _spans_at(asked), asked.get_tracer("rag_harness")
    root = _recording(asked, tracer.start_span(name, context=context.Context(), attributes=dict(attributes)))
    trial = spans.begin(root, _longest_text(asked))
    token = context.attach(trace.set_span_in_context(root, context.Context()))
    try:
        yield trial
    finally:
        context.detach(token)
        end_root(trial)
        spans.end(trial)


def end_root(trial: TracedTrial, answer: str = "") -> None:
    """End the root span of a trial, unless it has ended."""
    if trial.root.is_recording():
        trial.root.set_attribute("output.value", answer)
        trial.root.end()


def _checked(provider: Any) -> TracerProvider:
    if not hasattr(provider, "add_span_processor"):
        raise PrerequisiteError(
            f"There is no tracer provider that spans can be read from, only a {type(provider).__name__}. Nothing was "
            f"asked. Instrument the app at ours: rag_traced.provider. Or set one in conftest.py: "
            f"opentelemetry.trace.set_tracer_provider(opentelemetry.sdk.trace.TracerProvider()). See "
            "docs/how-to/traces.md."
        )
    checked: TracerProvider = provider
    return checked


def _recording(provider: TracerProvider, root: trace.Span) -> Span:
    if isinstance(root, Span) and root.is_recording():
        return root
    sampler = getattr(provider, "sampler", None)
    said = sampler.get_description() if sampler is not None else type(provider).__name__
    raise PrerequisiteError(
        f"The tracer provider drops the spans of trials ({said}), so nothing can be read off them. Nothing was asked. "
        f"Keep all while trials run: OTEL_TRACES_SAMPLER=always_on, and no OTEL_SDK_DISABLED."
    )


def _spans_at(provider: TracerProvider) -> TrialSpans:
    """Return our processor at a provider; the first call attaches it."""
    with _attaching:
        found = _attached.get(provider)
        if found is None:
            found = _attached[provider] = TrialSpans()
            provider.add_span_processor(found)
        return found


def _longest_text(provider: TracerProvider) -> int | None:
    # The SDK has no public API for it. Without it, cut texts are only noticed where they are not JSON any more.
    limits = getattr(provider, "_span_limits", None)
    found = getattr(limits, "max_span_attribute_length", None)
    return found if isinstance(found, int) else None
