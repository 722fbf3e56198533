"""One trial: a pipeline answers one case, once, repeatedly or from given hits.

Its output or its failure becomes a row.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from functools import cache, lru_cache, reduce
from operator import add
from time import perf_counter
from typing import Any

from pydantic import ValidationError

from rag_harness.core.concurrency import Deadline, inline
from rag_harness.core.errors import (
    BudgetError,
    CriticalError,
    DeadlineError,
    EmptyAnswerError,
    ModelCallError,
    ModelOutputError,
    PrerequisiteError,
    RagHarnessError,
)
from rag_harness.core.log import log
from rag_harness.core.protocols import Experiment, Pipeline
from rag_harness.core.registry import is_own_code, model_name, stated_fingerprint, stated_truth
from rag_harness.core.settings import Settings
from rag_harness.core.settings.profiles import prices_of
from rag_harness.core.text.language_detection import load_ahead
from rag_harness.core.text.memory import without_memory
from rag_harness.core.types import (
    SERVICE,
    Answer,
    Call,
    Case,
    Failure,
    Hit,
    Message,
    PipelineOutput,
    Query,
    Stage,
    TrialId,
    Usage,
)
from rag_harness.evaluation.measures.correctness import correctness
from rag_harness.models.calls import RetriesNoted, Session, asked_again, asked_in, refuse_long, trial_retries
from rag_harness.pipelines.endpoint.answer import most_contexts, refuse_many
from rag_harness.pipelines.trace import GivenSearches, Trace, giving, keeping_sent
from rag_harness.pipelines.user_pipelines import called, declined, output_of, with_page_names, without_reasoning
from rag_harness.records.row import (
    Candidate,
    ExperimentResult,
    HitMetadata,
    RetrievedChunk,
    RowCall,
    RowDecision,
    RowError,
    RowStage,
    StepHit,
    TokenUsage,
    first_problem,
)

_MOST_HITS = 20
"""Hits that are named; a first stage may return hundreds."""


@dataclass(frozen=True, slots=True)
class DebugLine:
    """The line of a row. Its text is made only where the log takes lines of that level."""

    row: ExperimentResult

    def __str__(self) -> str:
        """Return the line: ``e3-q1: ok in 1489 ms; found …; in the prompt …; 812 + 40 tokens in 1 call; …``."""
        row, usage = self.row, self.row.usage
        waited = f", waited {row.waited_ms:.0f} ms" if row.waited_ms else ""
        calls = f"{usage.calls} call{'s' * (usage.calls != 1)}"
        return "; ".join(
            [
                f"{row.trial_id}: {row.status} in {row.total_time_ms:.0f} ms",
                f"found {_hits(row.candidates)}",
                f"in the prompt {_hits(row.retrieved_chunks)}",
                f"{usage.prompt_tokens} prompt tokens, {usage.completion_tokens} answered, {calls}",
                f"retries {row.retries}{waited}",
            ]
        )


def _hits(hits: Sequence[Candidate | RetrievedChunk]) -> str:
    """Return the ids with their scores; a second score is the reranker's."""
    said = [
        f"{hit.chunk_id} {hit.score:.3f}" + (f"/{hit.rerank_score:.3f}" if hit.rerank_score is not None else "")
        for hit in hits[:_MOST_HITS]
    ]
    more = [f"and {len(hits) - _MOST_HITS} more"] if len(hits) > _MOST_HITS else []
    return ", ".join([*said, *more]) or "nothing"


# Makes the row of a trial from its pipeline's output. The flat columns come from the stages, where there are any.

_ANSWERING = ("answer", SERVICE)
"""Roles of the calls that produce the answer."""
_LONGEST_TOLD = 20_000
"""Most characters of the input or output of a step in a row."""
_PLAIN = "The fee is paid to you within 30 days."
"""Is English by its small words alone."""
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


# Run one trial: one pipeline on one case. It never raises: a failure is a value, and becomes a row.


@dataclass(frozen=True, slots=True)
class ConversationEnd:
    """A conversation that a simulated user has ended: after which turn, and why.

    ``out_of_role``: what the user was to say next did not follow from its scenario.
    """

    turn: int
    why: str
    out_of_role: bool = False

    def __str__(self) -> str:
        return f"after turn {self.turn}: {self.why}"


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """The result of a trial: its row, and whether no later trial can succeed either.

    ``row`` is None where the trial was not run, and ``not_run`` says why, or where its conversation was over before,
    and ``ended`` says so. ``error`` is what a debugger should see.
    """

    row: ExperimentResult | None
    critical: bool = False
    not_run: str = ""
    ended: ConversationEnd | None = None
    error: Exception | None = None


async def run_trial(
    trial: Trial,
    pipeline: Pipeline,
    settings: Settings,
    fingerprint: str,
    keep_prompt: KeepPrompt = lambda _: "",
    find_page: Callable[[str, str], str] | None = None,
) -> TrialOutcome:
    """Answer the case's query and make the row, in bounded time. Cancellation is the only error that it raises.

    ``find_page`` finds the page of a context that the pipeline calls otherwise, or does not name.
    """
    if settings.mode != "replay":
        _rehearse(settings.refusals, bool(trial.case.ground_truth or trial.case.evidence))
    started = perf_counter()
    trial_retries.set(RetriesNoted())
    keep_prompt = _once(keep_prompt)
    unkept: list[CriticalError] = []

    def kept(messages: Sequence[Message]) -> str:
        try:
            return keep_prompt(messages)
        except CriticalError as error:
            unkept.append(error)  # the answer is paid for, so its row is kept without the prompt; then the run stops
            return ""

    def row_of(output: PipelineOutput, failure: Failure | None) -> ExperimentResult:
        total_ms = (perf_counter() - started) * 1000
        row = make_row(trial, output, failure, total_ms, settings, fingerprint, kept)
        stated = "" if row.version else stated_fingerprint(pipeline)
        return row.model_copy(update={"version": stated}) if stated else row

    failure: Failure | None = None
    raised: Exception | None = None
    try:
        with keeping_sent(_without_errors(keep_prompt)):
            output = without_reasoning(await _in_time(_answer(pipeline, trial.case.query), settings.deadline))
        refuse_long(output.answer.text, settings.max_answer, type(pipeline).__name__)
        refuse_many(output, most_contexts(settings), type(pipeline).__name__)
        output = output if find_page is None else with_page_names(output, find_page)
        raised = _nothing_said(output)
        failure = _failure(raised) if raised is not None else None
        row = row_of(output, failure)
    except BudgetError as error:
        log.info("%s: not run: budget: %s", trial.trial_id, error)
        return TrialOutcome(None, not_run=f"budget: {error}")
    except Exception as error:
        failure, raised = _failure(error), error
        log.error("%s: %s failed", trial.trial_id, failure.stage, exc_info=error)
        row = _failed_row(error, failure, row_of)
    log.debug("%s", DebugLine(row))
    critical = bool(unkept) or (failure is not None and failure.critical)
    return TrialOutcome(row, critical, error=raised or next(iter(unkept), None))


def _once(keep_prompt: KeepPrompt) -> KeepPrompt:
    """Return ``keep_prompt`` for one trial: messages that it has kept, it names without a look at them."""
    kept: list[tuple[tuple[Message, ...], str]] = []

    def keep(messages: Sequence[Message]) -> str:
        sent = tuple(messages)
        found = next((name for each, name in kept if each == sent), None)
        if found is None:
            found = keep_prompt(sent)
            kept.append((sent, found))
        return found

    return keep


def _without_errors(keep_prompt: KeepPrompt) -> Callable[[Sequence[Message]], None]:
    """Return ``keep_prompt`` as it is called before an answer is there. The row tries again, and says what is wrong."""

    def keep(messages: Sequence[Message]) -> None:
        with suppress(CriticalError):
            keep_prompt(messages)

    return keep


@cache
def _rehearse(refusals: tuple[str, ...], has_gold: bool) -> None:
    """Make a row of an answer that nobody has given, before the first answer is asked for.

    What is made at first use, such as the phrases of refusals, takes a tenth of a second on a busy machine. An answer
    that came meanwhile would wait for it, and a kill would lose it. What tells languages is loaded beside the first
    calls: only a row with a gold needs it, and it takes longer than all else.
    """
    settings = replace(Settings(), refusals=refusals)
    case = Case(Query("", "When is it paid?"), ground_truth=_PLAIN if has_gold else "")
    if has_gold:
        load_ahead()
    with without_memory():
        make_row(Trial("", case), PipelineOutput(Answer(_PLAIN)), None, 0.0, settings, "")


def _nothing_said(output: PipelineOutput) -> EmptyAnswerError | None:
    said: object = output.answer.text
    if output.retrieval_only or not isinstance(said, str) or said.strip():
        return None  # a row refuses anything but text
    return EmptyAnswerError(
        "the answer is empty. A pipeline that does not know says so in words; one that only retrieves returns "
        "PipelineOutput(…, retrieval_only=True)",
        output.answer.raw,
    )


def _failed_row(
    error: Exception, failure: Failure, row_of: Callable[[PipelineOutput, Failure], ExperimentResult]
) -> ExperimentResult:
    try:
        row = row_of(_trace(error).output(Answer("")), failure)
    except Exception:  # the trace cannot be written either; a score may be NaN
        row = row_of(PipelineOutput(Answer("")), failure)
    # The trace has only calls that came back. An error of a call knows its own retries; where a deadline or a refusal
    # ended the trial, only the trial's notes do.
    given_up = error if isinstance(error, ModelCallError) else ModelCallError()
    noted = trial_retries.get()
    retries = max(row.retries + given_up.retries, noted.retries)
    waited_ms = max(row.waited_ms + given_up.waited_ms, noted.waited_ms)
    return row.model_copy(update={"retries": retries, "waited_ms": waited_ms})


async def _in_time(work: Coroutine[Any, Any, PipelineOutput], seconds: float) -> PipelineOutput:
    """Run ``work`` with a deadline; without one in a debugger."""
    if inline.get():
        return await work
    return await Deadline(seconds, f"deadline: no answer within {seconds:g} s. Allow more: --rag-deadline").bound(work)


async def _answer(pipeline: Pipeline, query: Query) -> PipelineOutput:
    name = type(pipeline).__name__
    return output_of(await called(pipeline.answer, query, f"{name}.answer"), f"{name}.answer")


def _trace(error: BaseException) -> Trace:
    """Return the trace of a failed pipeline. The trace of a missed deadline is on the cancellation that it caused."""
    told_by = error.__cause__ if isinstance(error, DeadlineError) else error
    trace = getattr(told_by, "rag_trace", None)
    return trace if isinstance(trace, Trace) else Trace()


def _failure(error: Exception) -> Failure:
    return Failure(
        stage="answer" if isinstance(error, EmptyAnswerError) else _trace(error).failed_stage or "pipeline",
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


# How a trial is asked for when it is not the first time: once more, or from given hits. Used here and on a node.


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """What is asked of a trial beyond its case. It can be pickled, and is sent to workers.

    Attributes:
        turn: how often the case was asked before; each turn has seeds of its own. 0 is the first time.
        hits: used instead of the pipeline's own retrieval; None where the pipeline retrieves.
        searches: what is given in place of searches of the pipeline; None where it makes all of them.
        keeps_failures: whether the row of a failure is a result, and is journalled.
        session: the session of a turn, where a service keeps conversations itself.
    """

    turn: int = 0
    hits: tuple[Hit, ...] | None = None
    keeps_failures: bool = True
    searches: GivenSearches | None = None
    session: Session = ""

    def keeps(self, outcome: TrialOutcome) -> bool:
        """Return whether the row of ``outcome`` belongs into a journal."""
        return outcome.row is not None and (outcome.row.ok or self.keeps_failures)


FIRST = TrialRequest()
"""The first time, with nothing given."""


@dataclass(frozen=True, slots=True)
class GivenHitsPipeline:
    """A pipeline that answers from the hits it was made with."""

    experiment: Experiment
    hits: Sequence[Hit]

    async def answer(self, query: Query) -> PipelineOutput:
        """Answer from the given hits.

        Raises:
            RagHarnessError: the experiment does not say how.
        """
        if self.experiment.answer_from is None:
            raise RagHarnessError(
                f"Experiment {self.experiment.id!r} was given {len(self.hits)} hits to answer from, and does not say "
                f"how. Build it as Experiment(…, answer_from=…)."
            )
        return await self.experiment.answer_from(query, self.hits)


async def answer_trial(
    trial: Trial,
    experiment: Experiment,
    settings: Settings,
    fingerprint: str,
    keep_prompt: KeepPrompt,
    asking: TrialRequest = FIRST,
) -> TrialOutcome:
    """Run ``trial`` with the pipeline of ``experiment`` as ``asking`` says; a failure is a value."""
    pipeline = experiment.pipeline if asking.hits is None else GivenHitsPipeline(experiment, asking.hits)
    with asked_again(asking.turn), asked_in(asking.session), giving(asking.searches):
        outcome = await run_trial(trial, pipeline, settings, fingerprint, keep_prompt, experiment.find_page)
    said = says_retrieval(experiment)
    if outcome.row is None or said is None:
        return outcome
    return replace(outcome, row=outcome.row.model_copy(update={"retrieves": said}))


def says_retrieval(experiment: Experiment) -> bool | None:
    """Return whether an experiment says that it retrieves; None where it does not say.

    One of this package alone says it by its parts.
    """
    if experiment.retrieves is not None:
        return experiment.retrieves
    if (stated := stated_truth(experiment.pipeline, "retrieves")) is not None:
        return stated
    return True if experiment.retriever is not None else None if is_own_code(experiment.code) else False
