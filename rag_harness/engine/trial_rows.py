"""Makes the row of a trial from its pipeline's output. The flat columns come from the stages, where there are any."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import lru_cache, reduce
from operator import add
from typing import Any

from rag_harness.measures.correct import correctness
from rag_harness.pipelines.calling import declined
from rag_harness.registry import model_name
from rag_harness.results.row import ExperimentResult
from rag_harness.results.row_parts import (
    Candidate,
    HitMetadata,
    RetrievedChunk,
    RowCall,
    RowDecision,
    RowError,
    RowStage,
    StepHit,
    TokenUsage,
)
from rag_harness.settings import Settings
from rag_harness.settings.prices import prices_of
from rag_harness.types import SERVICE, Call, Case, Failure, Hit, Message, PipelineOutput, Stage, TrialId, Usage

_ANSWERING = ("answer", SERVICE)
"""Roles of the calls that produce the answer."""
_LONGEST_TOLD = 20_000
"""Most characters of the input or output of a step in a row."""
_LONGEST_SAID = 300
"""Most characters of a metadata value in a row: the row of a chunk must not grow with what a page says of itself."""
KeepPrompt = Callable[[Sequence[Message]], str]
"""Keeps the messages of a call, and returns the name by which a row refers to them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One experiment on one case; the unit that pytest runs.

    ``user`` says who has said its question, where a user is simulated.
    """

    experiment: str
    case: Case
    user: RowStage | None = None

    @property
    def id(self) -> TrialId:
        """Experiment and query."""
        return TrialId(self.experiment, self.case.query.query_id)

    @property
    def trial_id(self) -> str:
        """The same as text, e.g. ``e3-q_direct_001``."""
        return str(self.id)


def make_row(
    trial: Trial,
    output: PipelineOutput,
    failure: Failure | None,
    total_ms: float,
    settings: Settings,
    fingerprint: str,
    keep_prompt: KeepPrompt = lambda _: "",
) -> ExperimentResult:
    """Return the row of a trial."""
    case, answer = trial.case, output.answer
    row = ExperimentResult(
        query_id=case.query.query_id,
        experiment=trial.experiment,
        query=case.query.text,
        inputs=dict(case.query.inputs),
        query_type=case.query_type,
        answerable=case.answerable,
        retrieved_chunks=tuple(_retrieved(hit) for hit in output.context),
        candidates=_candidates(output.retrieved or output.context),
        ranking=output.ranking,
        llm_answer=answer.text,
        raw_output=failure.raw_output if failure else answer.raw or answer.text,
        citations=answer.citations,
        invalid_citations=answer.invalid_citations,
        abstained=declined(answer, settings.refusals),
        reasoning_steps=answer.reasoning_steps,
        reasoning=_reasoning(output),
        ground_truth=case.ground_truth,
        context_reference=case.context_reference,
        metadata=dict(case.metadata),
        **_measured(output, total_ms, settings),
        stages=tuple(_stage(stage, keep_prompt) for stage in output.stages),
        user=trial.user,
        decisions=tuple(
            RowDecision(name=d.name, outcome=d.outcome, value=d.value, threshold=d.threshold, reason=d.reason)
            for d in output.decisions
        ),
        confidence=output.confidence,
        trace_id=output.trace_id,
        profile=settings.profile,
        mode=settings.mode,
        dry_run=settings.mode == "replay",
        status="error" if failure else "ok",
        error=RowError(stage=failure.stage, type=failure.error_type, message=failure.message) if failure else None,
        fingerprint=fingerprint,
        finished_at=datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
    )
    found = correctness(case, row)
    return row.model_copy(update={"correct": found.correct, "correct_by": found.by}) if found.by else row


def _measured(output: PipelineOutput, total_ms: float, settings: Settings) -> dict[str, Any]:
    """Return times, tokens, cost and model. The total is the sum of the stages, without the time in a queue."""
    calls = output.calls
    times = _times(output)
    usage = reduce(add, (call.usage for call in calls), Usage()) if output.stages else output.usage
    spent = sum(stage.ms for stage in output.stages) if output.stages else sum(filter(None, times.values()))
    model = next((call.model for call in reversed(calls) if call.role in _ANSWERING), output.model)
    return {
        **times,
        "ttft_ms": next((call.ttft_ms for call in calls if call.role in _ANSWERING), output.timings.ttft_ms),
        "total_time_ms": spent or total_ms if output.total_ms is None else output.total_ms,
        "usage": _tokens(usage),
        "cost_usd": _cost(calls or [Call("answer", model, usage)], settings),
        "retries": sum(call.retries for call in calls),
        "waited_ms": sum(call.waited_ms for call in calls),
        "model": model,
        "timings_recorded": output.replayed or (bool(calls) and all(call.recorded for call in calls)),
        "recorded_at": min(filter(None, (output.recorded_at, _recorded_at(calls))), default=""),
        "version": next((call.version for call in calls if call.version), ""),
    }


def _reasoning(output: PipelineOutput) -> str:
    """Return what the model of the answer thought, as its server or its pipeline tells it."""
    thought = [call.reasoning for call in output.calls if call.role in _ANSWERING]
    return "\n\n".join(filter(None, [*thought, output.answer.reasoning]))


def _recorded_at(calls: Sequence[Call]) -> str:
    """Return when the oldest replayed call was recorded; empty where none was replayed, or one has no date.

    Only calls that produce the answer count, not those of a judge inside the pipeline.
    """
    return min((call.recorded_at for call in calls if call.recorded and call.role != "judge"), default="")


def _times(output: PipelineOutput) -> dict[str, float | None]:
    said = output.timings
    if not output.stages:
        return {
            "retrieval_time_ms": said.retrieval_ms,
            "rerank_time_ms": said.rerank_ms,
            "llm_time_ms": said.llm_ms,
        }
    return {
        "retrieval_time_ms": _spent(stage.ms for stage in output.stages if _does(stage, "retrieve")),
        "rerank_time_ms": _spent(stage.ms for stage in output.stages if _does(stage, "rerank")),
        "llm_time_ms": _spent(stage.ms for stage in output.stages if stage.calls or _does(stage, "generate")),
    }


def _does(stage: Stage, kind: str) -> bool:
    return stage.kind == kind or (not stage.kind and stage.name == kind)


def _spent(milliseconds: Iterable[float]) -> float | None:
    """Return the sum; None without a step: an agent may search several times, or never."""
    found = list(milliseconds)
    return sum(found) if found else None


def _cost(calls: Sequence[Call], settings: Settings) -> float | None:
    """Return the USD of all calls; None where the cost of one is not known."""
    costs = [
        call.usd if call.role == SERVICE or call.usd is not None else _cost_of(call.model, call.usage, settings)
        for call in calls
    ]
    return None if not costs or None in costs else sum(cost for cost in costs if cost is not None)


def _cost_of(model: str, usage: Usage, settings: Settings) -> float | None:
    """Return USD by the price of the model that answered, or else of the model that was asked for."""
    if usage.usd is not None:
        return usage.usd
    prices = prices_of(settings)
    known = next((name for name in (model, model_name("chat", settings.chat_model)) if prices.price(name)), None)
    if known is None or not usage.calls or not (usage.prompt_tokens or prices.is_free(known)):
        return None
    return prices.cost(known, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)


def _tokens(usage: Usage) -> TokenUsage:
    return TokenUsage(
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        calls=usage.calls,
        cached_tokens=usage.cached_tokens,
        reasoning_tokens=usage.reasoning_tokens,
    )


def _stage(stage: Stage, keep_prompt: KeepPrompt) -> RowStage:
    return RowStage(
        name=stage.name,
        ms=stage.ms,
        calls=tuple(_call(call, keep_prompt) for call in stage.calls),
        detail=dict(stage.detail),
        kind=stage.kind,
        input=_bounded(stage.input),
        output=_bounded(stage.output),
        hits=tuple(
            StepHit(chunk_id=hit.chunk.chunk_id, filename=hit.chunk.doc_id, score=hit.score) for hit in stage.hits
        ),
    )


def _bounded(value: Any) -> Any:
    """Return what went into a step, or came out, shortened where it is long: a tool may return a whole page."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return value if len(text) <= _LONGEST_TOLD else f"{text[:_LONGEST_TOLD]} … ({len(text):,} characters)"


def _call(call: Call, keep_prompt: KeepPrompt) -> RowCall:
    return RowCall(
        role=call.role,
        model=call.model,
        usage=_tokens(call.usage),
        ms=call.ms,
        ttft_ms=call.ttft_ms,
        waited_ms=call.waited_ms,
        retries=call.retries,
        recorded=call.recorded,
        recorded_at=call.recorded_at,
        finish_reason=call.finish_reason,
        asked_without=call.asked_without,
        prompt=keep_prompt(call.messages),
    )


def _retrieved(hit: Hit) -> RetrievedChunk:
    chunk, page = hit.chunk, hit.chunk.metadata
    date = page.get("effective_date", page.get("date"))
    named = (page.get("version"), date, *(page.get(name) for name in ("markup", "module", "chapter", "url")))
    return RetrievedChunk(
        chunk_id=chunk.chunk_id,
        text=chunk.text,
        score=hit.score,
        rerank_score=hit.rerank_score,
        scores=_scores(hit),
        metadata=_where(chunk.doc_id, " > ".join(chunk.section), *(chunk.pages or (None, None)), *map(_said, named)),
    )


def _scores(hit: Hit) -> dict[str, float]:
    """Return the scores of a hit, which are its own dict: its rows share it."""
    return hit.scores if isinstance(hit.scores, dict) else dict(hit.scores)


@lru_cache(maxsize=256)
def _where(
    filename: str,
    section: str,
    page: int | None,
    last_page: int | None,
    *named: str | None,
) -> HitMetadata:
    """Return where chunks of one place come from. They share it: an answer may have a thousand of them."""
    version, date, markup, module, chapter, url = named
    return HitMetadata(
        filename=filename,
        section=section,
        version=version,
        page=page,
        last_page=last_page,
        date=date,
        markup=markup,
        module=module,
        chapter=chapter,
        url=url,
    )


def _said(value: Any) -> str | None:
    return None if value is None else str(value)[:_LONGEST_SAID]


def _candidates(hits: Sequence[Hit]) -> tuple[Candidate, ...]:
    return tuple(
        Candidate(chunk_id=hit.chunk.chunk_id, score=hit.score, rerank_score=hit.rerank_score, scores=_scores(hit))
        for hit in hits
    )
