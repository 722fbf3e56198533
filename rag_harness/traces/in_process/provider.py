"""The tracer provider of an app under test, and the root span of a trial there. None is installed globally."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

from opentelemetry import context, trace
from opentelemetry.sdk.trace import Span, SpanLimits, TracerProvider

from rag_harness.errors import PrerequisiteError
from rag_harness.traces.in_process.traced_trial import TracedTrial
from rag_harness.traces.in_process.trial_spans import TrialSpans

_attached: WeakKeyDictionary[Any, TrialSpans] = WeakKeyDictionary()
_attaching = threading.Lock()


def new_provider() -> TracerProvider:
    """Return a tracer provider that keeps all that it is told. It is not installed: hand it to an instrumentation."""
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
        PrerequisiteError: there is no provider, or it drops the root span. Nothing was asked yet.
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
    # The SDK has no public way to ask; without it, cut texts are only seen where they are no JSON any more.
    limits = getattr(provider, "_span_limits", None)
    found = getattr(limits, "max_span_attribute_length", None)
    return found if isinstance(found, int) else None
