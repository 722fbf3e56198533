"""An answer of a service with what its spans tell: the reply counts where it says something, the trace elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rag_harness.pipelines.endpoint.client import ServiceReply
from rag_harness.pipelines.endpoint.placing import Placing
from rag_harness.pipelines.endpoint.said import answer_of
from rag_harness.pipelines.endpoint.service_answer import ServiceAnswer
from rag_harness.pipelines.traced.traced_output import output_of
from rag_harness.traces.seen_trace import read_trace
from rag_harness.types import Call, PipelineOutput, Stage, Usage


def told_by_trace(output: PipelineOutput, said: ServiceAnswer, reply: ServiceReply, placing: Placing) -> PipelineOutput:
    """Return the output of a service's reply with the steps, searches and contexts of its trace.

    Args:
        output: by the reply.
        said: what the reply says.
        reply: has the spans, and the time that the service took.
        placing: finds the documents of chunks.

    Raises:
        TraceError: spans are cut, or do not tell what was found.
    """
    spans = reply.spans or ()
    seen = read_trace(spans, said.answer)
    told = output_of(seen, placing, said.answer)
    is_silent = not said.contexts
    return replace(
        output,
        answer=answer_of(said, told.context) if is_silent and said.citations is None else output.answer,
        retrieved=told.retrieved or output.retrieved,
        context=told.context if is_silent else output.context,
        stages=_stages(output.stages, [_as_recorded(stage, reply) for stage in told.stages], reply.total_ms),
        total_ms=reply.total_ms,
        trace_id=spans[0].trace_id if spans else "",
    )


def _as_recorded(stage: Stage, reply: ServiceReply) -> Stage:
    calls = (replace(call, recorded=reply.recorded, recorded_at=reply.recorded_at) for call in stage.calls)
    return replace(stage, calls=tuple(calls))


def _stages(own: Sequence[Stage], told: Sequence[Stage], total_ms: float) -> tuple[Stage, ...]:
    """Return the steps of the reply and of the trace. Time, tokens and money count once."""
    inside = sum(stage.ms for stage in told)
    asks = [replace(stage, ms=max(total_ms - inside, 0.0)) if stage.calls else stage for stage in own]
    calls = [call for stage in asks for call in stage.calls]
    if any(call.usage.prompt_tokens or call.usage.completion_tokens for call in calls):
        # The reply says what all of it came to.
        return (*asks, *(replace(stage, calls=()) for stage in told))
    if not any(stage.calls for stage in told):
        return (*asks, *told)
    if any(call.usd is not None for call in calls):
        # The price of an answer is known, and the trace says of how many tokens it is.
        told = [_with_calls(stage, lambda call: replace(call, usd=0.0)) for stage in told]
    else:
        asks = [_with_calls(stage, lambda call: replace(call, usd=0.0)) for stage in asks]
    return (*(_with_calls(stage, lambda call: replace(call, usage=Usage())) for stage in asks), *told)


def _with_calls(stage: Stage, change: Callable[[Call], Call]) -> Stage:
    return replace(stage, calls=tuple(map(change, stage.calls)))
