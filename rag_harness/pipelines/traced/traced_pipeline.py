"""An app as a pipeline: it answers, and its spans say what it searched for, found, reranked and asked of models."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rag_harness.errors import PrerequisiteError, TraceError
from rag_harness.models.recording.app_calls import AppCalls
from rag_harness.pipelines.endpoint.placing import Placing
from rag_harness.pipelines.recorded_pipeline import ReplayedParts, called_noting
from rag_harness.pipelines.trace import Trace
from rag_harness.pipelines.traced.answer_text import answer_text
from rag_harness.pipelines.traced.recorded_times import as_recorded
from rag_harness.pipelines.traced.traced_output import SOURCE, output_of
from rag_harness.registry.installed import install
from rag_harness.registry.own_parts import stated_fingerprint, stated_truth
from rag_harness.traces.seen_trace import read_trace
from rag_harness.traces.span_record import SpanRecord
from rag_harness.types import Answer, PipelineOutput, Query
from rag_harness.work.local_work import on_local_thread

if TYPE_CHECKING:
    from rag_harness.traces.in_process.traced_trial import TracedTrial


class TracedPipeline:
    """Asks an app and reads its trace.

    Args:
        app: an object with ``answer(query)``, or a function of the question's text. It may be async.
        provider: the tracer provider that the app's instrumentation has; None: the global one.
        experiment: its name, for spans and chunks without a document.
        placing: finds the documents of chunks.

    Raises:
        PrerequisiteError: the app is neither.
    """

    def __init__(
        self, app: Any, provider: Any = None, experiment: str = "traced", placing: Placing | None = None
    ) -> None:
        self.app, self.provider, self._experiment = app, provider, experiment
        self.parts = ReplayedParts()
        self._placing = placing or Placing(lambda: (), experiment, SOURCE)
        self._takes_query = callable(getattr(app, "answer", None))
        if not self._takes_query and not callable(app):
            raise PrerequisiteError(
                f"What is traced is a function of the question's text, or an object with a method answer; "
                f"{type(app).__name__} is neither. Hand over its method: rag_traced(app.invoke)."
            )

    def bound(self, experiment: str, placing: Placing, provider: Any) -> TracedPipeline:
        """Return the same app as the pipeline of an experiment, whose documents ``placing`` knows.

        ``provider`` counts where this pipeline names none.
        """
        own = provider if self.provider is None else self.provider
        return TracedPipeline(self.app, own, experiment, placing)

    @property
    def fingerprint(self) -> str:
        """What the app says of its version."""
        return stated_fingerprint(self.app)

    @property
    def retrieves(self) -> bool | None:
        """Whether the app says that it retrieves; None where it does not say."""
        return stated_truth(self.app, "retrieves")

    async def answer(self, query: Query) -> PipelineOutput:
        """Ask the app below a span of its own, and return its answer with what its spans tell.

        Raises:
            PrerequisiteError: there is no tracer provider to read from. The app was not asked.
            TraceError: the trace lacks what a row needs.
            RecordingMissError: what the app has called is not recorded, and this mode calls nobody.
        """
        provider = in_process()
        about = {"openinference.span.kind": "CHAIN", "input.value": query.text, "rag_harness.query_id": query.query_id}
        with provider.traced_trial(self.provider, f"rag_trial {self._experiment}", about) as trial:
            try:
                returned, calls = await self._asked(query)
            except Exception as error:
                await self._tell(error, trial.so_far())
                raise
            text = returned.answer.text if isinstance(returned, PipelineOutput) else answer_text(returned, self._name)
            provider.end_root(trial, text)
            with Trace().stage("trace"):
                told = await self._told(trial, text)
            told = as_recorded(replace(told, total_ms=trial.ms, trace_id=trial.trace_id), calls)
            told = self.parts.dated(told, calls)
        return _completed(returned, told) if isinstance(returned, PipelineOutput) else told

    async def _asked(self, query: Query) -> tuple[Any, AppCalls]:
        """Return what the app returned, and what became of its HTTP calls."""
        if self._takes_query:
            return await called_noting(self.app.answer, query, f"{self._name}.answer")
        return await called_noting(self.app, query.text, self._name)

    @property
    def _name(self) -> str:
        return str(getattr(self.app, "__qualname__", type(self.app).__name__))

    async def _told(self, trial: TracedTrial, text: str) -> PipelineOutput:
        try:
            spans = await trial.spans()
            # Looking up texts is CPU-bound. Off the loop, calls in flight continue.
            return await on_local_thread(lambda: self._read(spans, text))
        except TraceError as error:
            error.raw = text
            raise

    def _read(self, spans: Sequence[SpanRecord], answer: str) -> PipelineOutput:
        seen = read_trace(spans, answer)
        return output_of(seen, self._placing, answer)

    async def _tell(self, error: Exception, spans: Sequence[SpanRecord]) -> None:
        """Let the row of an app that has raised show how far it came."""
        with suppress(TraceError, AttributeError):
            error.rag_trace = _SoFar(await on_local_thread(lambda: self._read(spans, "")))  # type: ignore[attr-defined]


class _SoFar(Trace):
    """The trace of an app that raised."""

    def __init__(self, told: PipelineOutput) -> None:
        super().__init__(failed_stage="pipeline")
        self._told = told

    def output(self, answer: Answer, confidence: float | None = None) -> PipelineOutput:  # noqa: ARG002 - as a Trace
        return replace(self._told, answer=answer)


def _completed(said: PipelineOutput, told: PipelineOutput) -> PipelineOutput:
    """Return what an app says itself, with the rest from its trace."""
    return replace(
        said,
        retrieved=said.retrieved or told.retrieved,
        context=said.context or told.context,
        stages=said.stages or told.stages,
        total_ms=told.total_ms,
        trace_id=told.trace_id,
        recorded_at=told.recorded_at,
    )


def in_process() -> Any:
    """Return the room that knows the SDK of OpenTelemetry."""
    try:
        from rag_harness.traces.in_process import provider
    except ImportError as error:
        raise PrerequisiteError(
            f"Traces cannot be read: {error.name} is not installed. Nothing was asked. {install('traces')}"
        ) from error
    return provider
