"""Run one trial: one pipeline on one case. It never raises: a failure is a value, and becomes a row."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from time import perf_counter
from typing import Any

from pydantic import ValidationError

from rag_harness.errors import CriticalError, ModelOutputError, PrerequisiteError
from rag_harness.log import log
from rag_harness.pipelines.trace import Trace
from rag_harness.results import (
    Candidate,
    ExperimentResult,
    HitMetadata,
    RetrievedChunk,
    RowError,
    TokenUsage,
    first_problem,
)
from rag_harness.settings import Settings
from rag_harness.types import Answer, Case, Failure, Hit, PipelineOutput, Query, Timings


@dataclass(frozen=True, slots=True)
class Trial:
    """One experiment on one case; the unit that pytest runs."""

    experiment: str
    case: Case

    @property
    def trial_id(self) -> str:
        """Short id, e.g. ``e3-q_direct_001``."""
        return f"{self.experiment}-{self.case.query.query_id}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a trial came to: its row, and whether no later trial can succeed either."""

    row: ExperimentResult
    critical: bool = False


async def run_trial(trial: Trial, pipeline: Any, settings: Settings, fingerprint: str) -> Outcome:
    """Answer the case's query and make the row. Only cancellation gets out."""
    started = perf_counter()

    def row_of(output: PipelineOutput, failure: Failure | None) -> ExperimentResult:
        return make_row(trial, output, failure, (perf_counter() - started) * 1000, settings, fingerprint)

    failure = None
    try:
        row = row_of(await _answer(pipeline, trial.case.query), None)
    except Exception as error:
        failure = _failure(error)
        log.error("%s: %s failed", trial.trial_id, failure.stage, exc_info=error)
        row = _failed_row(error, failure, row_of)
    log.debug("%s: %s in %.0f ms", trial.trial_id, row.status, row.total_time_ms)
    return Outcome(row, critical=failure is not None and failure.critical)


def _failed_row(
    error: Exception, failure: Failure, row_of: Callable[[PipelineOutput, Failure], ExperimentResult]
) -> ExperimentResult:
    try:
        return row_of(_trace(error).output(Answer("")), failure)
    except Exception:  # what was gathered cannot be recorded either, a NaN score say
        return row_of(PipelineOutput(Answer("")), failure)


async def _answer(pipeline: Any, query: Query) -> PipelineOutput:
    if inspect.iscoroutinefunction(pipeline.answer):
        answered = await pipeline.answer(query)
    else:
        answered = await asyncio.to_thread(_call, pipeline, query)
        if inspect.isawaitable(answered):
            answered = await answered
    if isinstance(answered, str):
        return PipelineOutput(Answer(answered, raw=answered))
    if not isinstance(answered, PipelineOutput):
        raise TypeError(
            f"{type(pipeline).__name__}.answer returned {type(answered).__name__}; it must return a PipelineOutput or "
            f"the answer as a string."
        )
    return answered


def _call(pipeline: Any, query: Query) -> Any:
    try:
        return pipeline.answer(query)
    except StopIteration as error:
        # asyncio cannot hand it over, and would wait for ever.
        raise RuntimeError(f"{type(pipeline).__name__}.answer raised StopIteration") from error


def _trace(error: Exception) -> Trace:
    trace = getattr(error, "rag_trace", None)
    return trace if isinstance(trace, Trace) else Trace()


def _failure(error: Exception) -> Failure:
    return Failure(
        stage=_trace(error).failed_stage or "pipeline",
        error_type=type(error).__name__,
        message=_message(error),
        raw_output=error.raw if isinstance(error, ModelOutputError) else "",
        critical=isinstance(error, (CriticalError, PrerequisiteError)),
    )


def _message(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return f"the pipeline's output cannot be recorded: {error.title}: {first_problem(error)}"
    try:
        return str(error) or repr(error)
    except Exception:
        return "its message cannot be read"


def make_row(
    trial: Trial, output: PipelineOutput, failure: Failure | None, total_ms: float, settings: Settings, fingerprint: str
) -> ExperimentResult:
    """Return the row of a trial."""
    case, answer = trial.case, output.answer
    return ExperimentResult(
        query_id=case.query.query_id,
        experiment=trial.experiment,
        query=case.query.text,
        query_type=case.query_type,
        retrieved_chunks=tuple(_retrieved(hit) for hit in output.context),
        candidates=_candidates(output.retrieved or output.context),
        llm_answer=answer.text,
        raw_output=failure.raw_output if failure else answer.raw or answer.text,
        citations=answer.citations,
        invalid_citations=answer.invalid_citations,
        abstained=answer.abstained,
        reasoning_steps=answer.reasoning_steps,
        ground_truth=case.ground_truth,
        context_reference=case.context_reference,
        metadata=dict(case.metadata),
        retrieval_time_ms=output.timings.retrieval_ms,
        rerank_time_ms=output.timings.rerank_ms,
        llm_time_ms=output.timings.llm_ms,
        ttft_ms=output.timings.ttft_ms,
        total_time_ms=_sum_of_stages(output.timings) or total_ms,
        usage=TokenUsage(
            prompt_tokens=output.usage.prompt_tokens,
            completion_tokens=output.usage.completion_tokens,
            calls=output.usage.calls,
        ),
        retries=output.retries,
        waited_ms=output.waited_ms,
        model=output.model,
        profile=settings.profile,
        mode=settings.mode,
        dry_run=settings.mode == "replay",
        timings_recorded=output.recorded,
        status="error" if failure else "ok",
        error=RowError(stage=failure.stage, type=failure.error_type, message=failure.message) if failure else None,
        fingerprint=fingerprint,
        finished_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
    )


def _sum_of_stages(times: Timings) -> float:
    """Add up the stages: what the query cost, not how long it stood in line behind others in flight."""
    return sum(each or 0.0 for each in (times.retrieval_ms, times.rerank_ms, times.llm_ms))


def _retrieved(hit: Hit) -> RetrievedChunk:
    chunk = hit.chunk
    where = HitMetadata(filename=chunk.doc_id, section=" > ".join(chunk.section))
    return RetrievedChunk(
        chunk_id=chunk.chunk_id, text=chunk.text, score=hit.score, rerank_score=hit.rerank_score, metadata=where
    )


def _candidates(hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    return tuple(Candidate(chunk_id=hit.chunk.chunk_id, score=hit.score, rerank_score=hit.rerank_score) for hit in hits)
