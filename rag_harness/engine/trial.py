"""Run one trial: one pipeline on one case. It never raises: a failure is a value, and becomes a row."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from time import perf_counter
from typing import Any

from pydantic import ValidationError

from rag_harness.deadline import Deadline
from rag_harness.errors import BudgetError, CriticalError, DeadlineError, ModelOutputError, PrerequisiteError
from rag_harness.files.log import log
from rag_harness.local_work import in_a_thread, inline
from rag_harness.pipelines.trace import Trace
from rag_harness.registry import model_name
from rag_harness.results.row import (
    Candidate,
    ExperimentResult,
    HitMetadata,
    RetrievedChunk,
    RowError,
    TokenUsage,
    first_problem,
)
from rag_harness.settings import Settings
from rag_harness.settings.prices import Prices
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
    """What a trial came to: its row, and whether no later trial can succeed either.

    ``row`` is None where the trial was not run, and ``not_run`` says why. ``error`` is what a debugger should see.
    """

    row: ExperimentResult | None
    critical: bool = False
    not_run: str = ""
    error: Exception | None = None


async def run_trial(trial: Trial, pipeline: Any, settings: Settings, fingerprint: str) -> Outcome:
    """Answer the case's query and make the row, in bounded time. Only cancellation gets out."""
    started = perf_counter()

    def row_of(output: PipelineOutput, failure: Failure | None) -> ExperimentResult:
        return make_row(trial, output, failure, (perf_counter() - started) * 1000, settings, fingerprint)

    failure, raised = None, None
    try:
        row = row_of(await _in_time(_answer(pipeline, trial.case.query), settings.deadline), None)
    except BudgetError as error:
        log.info("%s: not run: budget: %s", trial.trial_id, error)
        return Outcome(None, not_run=f"budget: {error}")
    except Exception as error:
        failure, raised = _failure(error), error
        log.error("%s: %s failed", trial.trial_id, failure.stage, exc_info=error)
        row = _failed_row(error, failure, row_of)
    log.debug("%s: %s in %.0f ms", trial.trial_id, row.status, row.total_time_ms)
    return Outcome(row, critical=failure is not None and failure.critical, error=raised)


def _failed_row(
    error: Exception, failure: Failure, row_of: Callable[[PipelineOutput, Failure], ExperimentResult]
) -> ExperimentResult:
    try:
        return row_of(_trace(error).output(Answer("")), failure)
    except Exception:  # what was gathered cannot be recorded either, a NaN score say
        return row_of(PipelineOutput(Answer("")), failure)


async def _in_time(work: Coroutine[Any, Any, PipelineOutput], seconds: float) -> PipelineOutput:
    """Bound ``work``, but not while a person looks at it in a debugger."""
    if inline.get():
        return await work
    return await Deadline(seconds, f"deadline: no answer within {seconds:g} s. Allow more: --rag-deadline").bound(work)


async def _answer(pipeline: Any, query: Query) -> PipelineOutput:
    if inspect.iscoroutinefunction(pipeline.answer):
        answered = await pipeline.answer(query)
    else:
        answered = await in_a_thread(lambda: _call(pipeline, query))
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


def _trace(error: BaseException) -> Trace:
    """Return what a failure's pipeline had done; the end of a deadline knows it through the cancellation it made."""
    told_by = error.__cause__ if isinstance(error, DeadlineError) else error
    trace = getattr(told_by, "rag_trace", None)
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
        cost_usd=_cost(output, settings),
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


def _cost(output: PipelineOutput, settings: Settings) -> float | None:
    """Return USD: by the model that answered, or else by the one that was asked for."""
    prices, usage = Prices.load(settings.prices_path), output.usage
    asked = model_name("chat", settings.chat_model)
    known = next((name for name in (output.model, asked) if prices.price(name)), None)
    if known is None or not usage.calls or not (usage.prompt_tokens or prices.is_free(known)):
        return None
    return prices.cost(known, usage.prompt_tokens, usage.completion_tokens)


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
