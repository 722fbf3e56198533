"""Deals spans to the trials that are under way, by the id of their trace."""

from __future__ import annotations

import threading
from collections import OrderedDict
from time import time_ns

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from rag_harness.traces.in_process.traced_trial import TracedTrial, trace_id_of
from rag_harness.traces.in_process.workers import Worker, worker_here
from rag_harness.traces.span_kinds import TELLS_WORK, kind_in
from rag_harness.work.deadline import is_in_force

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
        """Return the worker here, where a trial has started it. Its spans are the trial's, whoever asks for them."""
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
