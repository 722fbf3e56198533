"""The spans that a service sends while it is tried: which came, and what a run would read of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rag_harness.errors import TraceError

if TYPE_CHECKING:
    from rag_harness.settings.endpoint_spec import EndpointSpec
    from rag_harness.traces.span_inbox import AwaitedTrace
    from rag_harness.traces.span_record import SpanRecord
    from rag_harness.traces.steps import SeenStep

_MOST = 30
"""The most spans that are listed."""


class TriedSpans:
    """Listens as a run does.

    Args:
        spec: a service that sends its spans.
    """

    def __init__(self, spec: EndpointSpec) -> None:
        # Its imports are needed only where spans are received.
        from rag_harness.models.recording.scrubbing import Cleaner
        from rag_harness.pipelines.endpoint.listening import Listening

        # What is shown goes through show_part, which hides the secrets.
        self._listening = Listening(spec, Cleaner())

    @contextmanager
    def expecting(self) -> Iterator[AwaitedTrace]:
        """Keep the spans of a new trace during the block."""
        with self._listening.expecting() as trace:
            yield trace

    async def of(self, trace: AwaitedTrace) -> Sequence[SpanRecord]:
        """Return the spans of a trace, once it is whole.

        Raises:
            TraceError: it is not whole in time.
        """
        return await self._listening.spans_of(trace)

    def close(self) -> None:
        """Stop listening."""
        self._listening.close()


def spans_shown(spans: Sequence[SpanRecord]) -> Iterator[str]:
    """Yield a line a span, in the order in which they began."""
    from rag_harness.traces.span_kinds import kind_of

    for span in sorted(spans, key=lambda each: each.start_ns)[:_MOST]:
        yield f"{kind_of(span) or '-':<17}{span.name[:40]:<40} {span.ms:,.0f} ms{', failed' if span.failed else ''}"
    if len(spans) > _MOST:
        yield f"… {len(spans) - _MOST:,} more spans"


def steps_shown(spans: Sequence[SpanRecord], answer: str) -> tuple[list[str], bool]:
    """Return a line a step that a run reads of the spans, and whether it can read them; else the line says why not."""
    from rag_harness.traces.seen_trace import read_trace

    try:
        return [_step(step) for step in read_trace(spans, answer).steps], True
    except TraceError as error:
        return [f"nothing: {error}"], False


def _step(step: SeenStep) -> str:
    if step.returns_documents:
        return f"{step.kind or 'join':<17}{step.name:<23} {len(step.found or ())} documents"
    if step.model_call is None:
        return f"{step.kind:<17}{step.name}"
    call = step.model_call.call
    used = f"{call.usage.prompt_tokens:,} and {call.usage.completion_tokens:,} tokens"
    return f"{step.kind:<17}{step.name:<23} {call.model}, {used}"
